# SPDX-License-Identifier: Apache-2.0
"""One-token changes of C++ sources: where they may be made, and what they make of a line."""
import re

# What a token may become. Comparison signs count only with spaces around them: others are template brackets.
SWAPS = {
    "<": ["<="], "<=": ["<"], ">": [">="], ">=": [">"], "==": ["!="], "!=": ["=="], "&&": ["||"], "||": ["&&"],
    "+": ["-"], "-": ["+"], "*": ["/"], "/": ["*"], "%": ["/"], "+=": ["-="], "-=": ["+="], "++": ["--"], "--": ["++"],
    "<<": [">>"], ">>": ["<<"], "|": ["&"], "&": ["|"], "|=": ["&="], "&=": ["|="],
    "true": ["false"], "false": ["true"], "min": ["max"], "max": ["min"], "break": ["continue"],
}
SPACED = {"<", ">", "<=", ">=", "==", "!=", "&&", "||", "+", "-", "*", "/", "%", "+=", "-=", "<<", ">>", "|", "&", "|=", "&="}
TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|[A-Za-z_]\w*|0[xX][0-9a-fA-F\']+\w*|\d[\d\']*\w*'
                   r'|<<=|>>=|<=>|->|\+\+|--|<=|>=|==|!=|&&|\|\||\+=|-=|\|=|&=|<<|>>|[-+*/%<>|&!]')
# Lines that compute nothing.
NOTHING = re.compile(r"^\s*(?:#|//|\*|template\b|using\b|static_assert\b|namespace\b|friend\b|class\b|struct\b|LOG|return Fail|"
                     r"typedef\b|\[\[|operator\b)|\boperator\b|\bconst char\b")


def _without_comments(text):
    """The same text, comments and strings blanked, so that positions stay."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group(0))
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', blank, text, flags=re.S)


def sites(text):
    """[(offset, old token, new token)] of a source text: all its one-token changes."""
    code = _without_comments(text)
    found = []
    at = 0
    for line in code.splitlines(keepends=True):
        if not NOTHING.match(line) and not NOTHING.search(line):
            for match in TOKEN.finditer(line):
                token = match.group(0)
                before, after = line[:match.start()], line[match.end():]
                spaced = before.endswith(" ") and before.strip() and after[:1] in (" ", "\n")
                if token in SWAPS and (token not in SPACED or spaced):
                    found += [(at + match.start(), token, new) for new in SWAPS[token]]
                elif token == "!" and after[:1].strip() and not before.endswith("="):
                    found.append((at + match.start(), "!", ""))
                elif re.fullmatch(r"\d+", token) and not before.endswith((".", "e")):
                    found.append((at + match.start(), token, str(int(token) + 1)))
        at += len(line)
    return found


def mutate(text, site):
    offset, old, new = site
    assert text.startswith(old, offset)
    return text[:offset] + new + text[offset + len(old):]


def line_of(text, offset):
    """(line number, the line without its indentation)."""
    number = text.count("\n", 0, offset) + 1
    return number, text.splitlines()[number - 1].strip()
