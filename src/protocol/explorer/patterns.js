// The cost of a pattern. The browser's regular expressions backtrack: for some patterns, such as `^(a+)+$`,
// a short text would take minutes. The server's need linear time.

/** An escape, a class, the start of a group, a repetition, or any other character. */
const PATTERN_TOKEN = /\\.|\[(?:\\.|[^\]\\])*\]|\(\??|\{\d+(?:,\d*)?\}|./gsu;

/** The most steps that matching may take; infinite if a repeated group can match a text in several ways. */
function stepsOf(pattern, length) {
  const groups = [];
  let steps = length; // A match may begin anywhere.
  let isVariable = false; // true after a group with a choice or a repetition
  for (const [token] of pattern.matchAll(PATTERN_TOKEN)) {
    const isRepeated = /^([*+]|\{.*\}$)/s.test(token);
    const isChoice = token === '?' || token === '|';
    if (isRepeated && isVariable) return Infinity;
    isVariable = false;
    if (token.startsWith('(')) groups.push(false);
    else if (token === ')') {
      isVariable = groups.pop();
      if (isVariable && groups.length) groups[groups.length - 1] = true;
    } else if (isChoice || (isRepeated && !/^\{\d+\}$/.test(token))) {
      steps *= isChoice ? 2 : length;
      if (groups.length) groups[groups.length - 1] = true;
    }
  }
  return steps;
}
