// ruff.mjs FILE...: runs ruff, compiled to WebAssembly, over Python files and
// prints the findings; the exit status is 1 if there are any.
import { readFileSync } from 'node:fs';
import { PositionEncoding, Workspace } from '@astral-sh/ruff-wasm-nodejs';

const settings = {
  'line-length': 120,
  'target-version': 'py311',
  lint: {
    select: ['E', 'F', 'W', 'I', 'B', 'UP'],
    // The programs use the field's short names and lambdas (E731, E741).
    // Functions made in a loop are called in the same round (B023), and
    // defaults are constants (B008).
    ignore: ['E731', 'E741', 'B008', 'B023', 'B905'],
  },
};
const workspace = new Workspace(settings, PositionEncoding.Utf8);
let found = 0;
for (const file of process.argv.slice(2)) {
  for (const d of workspace.check(readFileSync(file, 'utf8'))) {
    console.log(`${file}:${d.start_location.row}:${d.start_location.column}: ${d.code}: ${d.message}`);
    found++;
  }
}
process.exit(found > 0 ? 1 : 0);
