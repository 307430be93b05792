"""No comment and no line of a document is wider than 110 columns; `--fix` wraps what is.

Who calls it: scripts/lint.sh. It looks at full-line comments of Rust, Python and shell files, at docstrings,
and at the text of Markdown files. Tables, code, headings and hidden comments of pages are left alone, and so
are words that are wider by themselves (addresses). Only paragraphs with a line that is too wide are wrapped
anew, so that a fix changes little else.
Limits: comments at the end of a line of code, and those of SQL and of isolation tests, are not looked at.
"""

import ast
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
WIDTH = 110
COMMENT = {
    ".rs": re.compile(r"^(\s*)(//[/!]?)(?!/)( ?)(.*)$"),
    ".py": re.compile(r"^(\s*)(#)(?!!)( ?)(.*)$"),
    ".sh": re.compile(r"^(\s*)(#)(?!!)( ?)(.*)$"),
    ".toml": re.compile(r"^(\s*)(#)( ?)(.*)$"),
}
ITEM = re.compile(r"^(\s*)([-*+]|\d+[.)])\s+")
# A line that begins so is another thing than text.
MARK = re.compile(r"^\s*([-*+>|]|#+|\d+[.)]|=+|-+)(\s|$)|^\s*(```|\||<|\[[^]]+\]:)")
# Words that begin a line of their own.
LABEL = re.compile(r"^\s*(Invariants?:|Payload:|Errors:|SAFETY:|Usage:|Limits:|Who calls it:|Called by )")


def wrapped(text, first, rest):
    """The words of a text in lines of at most WIDTH columns, the first after `first`, the others after
    `rest`."""
    lines, line, start = [], first, True
    for word in text.split():
        begin = "" if start else " "
        # A word that would make of its line a list or a heading stays on the line before.
        if start or len(line) + len(begin) + len(word) <= WIDTH or MARK.match(word + " "):
            line, start = line + begin + word, False
        else:
            lines.append(line)
            line = rest + word
    return [*lines, line]


def paragraphs(lines):
    """Pieces of a text: (its lines, whether they may be wrapped). Code and comments of pages stay as they
    are."""
    piece, end = [], ""
    for line in lines:
        fence = line.lstrip().startswith("```")
        if end or fence or line.startswith("<!--"):
            if piece:
                yield piece, True
                piece = []
            yield [line], False
            if not end:
                end = "```" if fence else "-->"
                line = line.lstrip()[3:]
            if end in line:
                end = ""
            continue
        is_item = bool(ITEM.match(line) or LABEL.match(line))
        is_other = not line.strip() or (bool(MARK.match(line)) and not is_item)
        is_indented = len(line) - len(line.lstrip()) >= 4 and not piece
        if is_item or is_other or is_indented:
            if piece:
                yield piece, True
            piece = []
        if is_other or (is_indented and not is_item):
            yield [line], False
        else:
            piece.append(line)
    if piece:
        yield piece, True


def fixed(lines, prefix):
    """The lines of a text that each stand after `prefix`."""
    result = []
    for piece, is_text in paragraphs(lines):
        if not is_text or not any(len(prefix + line) > WIDTH for line in piece):
            result += [prefix + line if line else prefix.rstrip() for line in piece]
            continue
        head = ITEM.match(piece[0])
        indent = head.group(0) if head else piece[0][: len(piece[0]) - len(piece[0].lstrip())]
        text = " ".join([piece[0][len(indent) :], *piece[1:]])
        result += wrapped(text, prefix + indent, prefix + " " * len(indent))
    return result


def comments(source, pattern, inside):
    """A source file with its comments wrapped. `inside`: the lines that are within strings."""
    result, block, shape = [], [], None

    def flush():
        nonlocal block, shape
        if block:
            result.extend(fixed(block, shape))
        block, shape = [], None

    for number, line in enumerate(source):
        found = None if number in inside else pattern.match(line)
        if found and (found.group(3) or not found.group(4)):
            mine = f"{found.group(1)}{found.group(2)} "
            if mine != shape:
                flush()
                shape = mine
            block.append(found.group(4))
        else:
            flush()
            result.append(line)
    flush()
    return result


def docstrings(text):
    """Ranges of lines of the docstrings' bodies, from their first line to the one with the closing quotes."""
    kinds = (ast.Module, ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, kinds) and ast.get_docstring(node, clean=False) is not None:
            yield range(node.body[0].lineno - 1, node.body[0].end_lineno)


def strings(text):
    """Lines inside of strings of several lines, which are no comments whatever they look like."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Constant, ast.JoinedStr)) and node.end_lineno > node.lineno:
            found.update(range(node.lineno - 1, node.end_lineno))
    return found


def wrapped_docstrings(lines, ranges):
    """The lines of a Python file with its docstrings wrapped. `ranges` say where they are."""
    for span in sorted(ranges, key=lambda span: -span.start):
        body = lines[span.start : span.stop]
        indent = body[0][: len(body[0]) - len(body[0].lstrip())]
        quoted = body[0].strip()
        if not quoted.startswith('"""') or not any(len(line) > WIDTH for line in body):
            continue
        inner = [quoted[3:], *(line[len(indent) :] if line.startswith(indent) else line for line in body[1:])]
        alone = inner[-1].strip() == '"""'
        inner = inner[:-1] if alone else [*inner[:-1], inner[-1].rstrip()[:-3]]
        made = fixed(inner, indent)
        # The quotes take three columns of the first line.
        made = fixed([line[len(indent) :] for line in [f'{indent}"""{made[0].strip()}', *made[1:]]], indent)
        if alone or len(made[-1]) + 3 > WIDTH:
            made.append(f'{indent}"""')
        else:
            made[-1] += '"""'
        lines[span.start : span.stop] = made
    return lines


def with_width(path):
    """The text of a file, and the same with what is too wide wrapped."""
    text = path.read_text(encoding="utf-8")
    lines = text.split("\n")
    if path.suffix == ".md":
        return text, "\n".join(fixed(lines, ""))
    inside = strings(text) if path.suffix == ".py" else set()
    lines = comments(lines, COMMENT[path.suffix], inside)
    if path.suffix == ".py":
        lines = wrapped_docstrings(lines, docstrings("\n".join(lines)))
    return text, "\n".join(lines)


def main():
    fix = sys.argv[1:] == ["--fix"]
    # Also files that are not committed yet.
    list_files = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(list_files, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    faults = 0
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if not path.exists() or (path.suffix != ".md" and path.suffix not in COMMENT):
            continue
        text, right = with_width(path)
        if text == right:
            continue
        if fix:
            path.write_text(right, encoding="utf-8")
            continue
        faults += 1
        lines = zip(text.split("\n"), right.split("\n"))
        line = next((at for at, (one, other) in enumerate(lines, 1) if one != other), 0)
        print(f"error: {name}:{line}: wider than {WIDTH} columns (scripts/check_width.py --fix wraps it)", file=sys.stderr)
    print(f"width: {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
