// npm run build: builds hdr4me.js from src/hdr4me.js and writes the SHA-256 of the source into package.json.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { minify } from "terser";

const path = (name) => new URL(name, import.meta.url);
const source = readFileSync(path("src/hdr4me.js"), "utf8");
const { code } = await minify(source.replace(/\bconst\b/g, "let"), {
  module: true,
  ecma: 2022,
  compress: { passes: 4, unsafe_arrows: true, unsafe_methods: true, pure_getters: true, keep_fargs: false },
  mangle: { properties: { regex: /^(drawOutput|parts|toCode|codeOf|isLabel|clean|leaves|memoizedEpsilon|reportsUrl)$/ } },
});
writeFileSync(path("hdr4me.js"), code + "\n");
const about = JSON.parse(readFileSync(path("package.json"), "utf8"));
about.config = { builtFrom: createHash("sha256").update(source).digest("hex") };
writeFileSync(path("package.json"), JSON.stringify(about, null, 2) + "\n");
console.log(`hdr4me.js: ${Buffer.byteLength(code) + 1} bytes`);
