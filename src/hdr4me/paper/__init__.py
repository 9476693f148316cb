"""The paper reproduced: data sets, figures, claims, errata."""
