#!/usr/bin/env python3
"""Gives the questions of questions.toml to a coding agent, with and without the page for agents, and grades the answers.

    tests/evaluation/ask.py --agent 'some-agent --print' --warpscope target/release/warpscope [--only 3]

The agent is a command that reads a prompt from stdin, may run commands in its current folder, and prints its answer. It runs in a
folder with the reports alone, once for each question and way: `with` gets the page in its prompt, `without` only the name of the
program. An answer is right if its last line, `ANSWER: …`, is the label. By hand: an agent costs money and needs the network.
"""

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

PROMPT = """The folder you are in has profiles of GPU programs: {files}. The program `warpscope` reads them.
{page}
Question: {ask}
Answer with the identifier, name, number or flag that the tool gives for it, on a last line that begins with "ANSWER: ".
"""


def grade(said, expected):
    """Whether the last answer names what the label says; lists need all of their elements and no other identifier."""
    lines = [line for line in said.splitlines() if line.startswith("ANSWER:")]
    if not lines:
        return False
    answer = lines[-1].removeprefix("ANSWER:").strip().strip("`\"'.").lower()
    wanted = expected if isinstance(expected, list) else [expected]
    words = [json.dumps(w).strip('"').lower() for w in wanted]
    return answer in (", ".join(words), json.dumps(words)) or len(words) == 1 and answer.split("(")[0].strip() == words[0]


def ask(agent, warpscope, question, page, seconds):
    with tempfile.TemporaryDirectory() as folder:
        names = []
        for file in question["files"]:
            names.append(os.path.basename(file))
            shutil.copy(os.path.join(ROOT, "fixtures", file), folder)
        env = dict(os.environ, PATH=os.path.dirname(os.path.abspath(warpscope)) + os.pathsep + os.environ["PATH"])
        prompt = PROMPT.format(files=", ".join(names), page=page, ask=question["ask"])
        try:
            done = subprocess.run(shlex.split(agent), input=prompt, text=True, capture_output=True, cwd=folder, env=env, timeout=seconds)
        except subprocess.TimeoutExpired:
            return ""
        return done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--agent", required=True, help="command of the agent")
    parser.add_argument("--warpscope", default=os.path.join(ROOT, "target/release/warpscope"))
    parser.add_argument("--only", type=int, help="ask the first N questions only")
    parser.add_argument("--seconds", type=int, default=300, help="time for each answer")
    args = parser.parse_args()
    with open(os.path.join(HERE, "questions.toml"), "rb") as file:
        questions = tomllib.load(file)["question"][: args.only]
    page = subprocess.run([args.warpscope, "agent"], capture_output=True, text=True, check=True).stdout
    right = {"with": 0, "without": 0}
    for number, question in enumerate(questions, 1):
        for way, text in (("with", page), ("without", "`warpscope --help` says how.")):
            good = grade(ask(args.agent, args.warpscope, question, text, args.seconds), question["answer"])
            right[way] += good
            print(f"{number:2} {way:8} {'right' if good else 'WRONG'}  {question['ask']}", flush=True)
    print(", ".join(f"{way}: {n} of {len(questions)}" for way, n in right.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
