// Writes hdr4me.js: src/hdr4me.js without comments, indentation and blank lines. Nothing is renamed or rewritten.
import { readFileSync, writeFileSync } from "node:fs";

const folder = new URL(".", import.meta.url);
const lines = readFileSync(new URL("src/hdr4me.js", folder), "utf8").split("\n");
const kept = lines.map((line) => line.trim().replace(/ \/\/ [^"'`]*$/, "")).filter((line) => line && !line.startsWith("//"));
const notice = "// hdr4me, MIT licence. Built from src/hdr4me.js, which has the comments.";
const text = [notice, ...kept].join("\n") + "\n";
if (process.argv[2] == "--print") process.stdout.write(text);
else writeFileSync(new URL("hdr4me.js", folder), text);
