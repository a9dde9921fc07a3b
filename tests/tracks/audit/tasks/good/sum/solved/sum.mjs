import { readFileSync } from "node:fs";

const sums = {};
for (const line of readFileSync(process.argv[2], "utf8").trim().split("\n").slice(1)) {
  const [region, amount] = line.split(",");
  sums[region] = (sums[region] ?? 0) + Number(amount);
}
for (const region of Object.keys(sums).sort()) console.log(region, sums[region]);
