"""The twenty prompts of gate A: prose, code, conversations and repetition, cut to given lengths in tokens."""

PROSE = """The harbour was quiet before the first boats came in. A woman in a yellow coat walked along the wall, counting the
steps as she had done when she was a child, and stopped where the old crane threw its shadow on the water. Her brother had
left from here, nineteen years ago, with a bag of tools and a promise to write every month. He wrote twice. She did not mind
any more; what she wanted to know was whether the crane still worked, because the town had decided to sell it. """
HISTORY = """The history of the printing press is also a history of paper. Before cheap paper reached the cities of Europe, a
copy of a long book needed the skins of more than a hundred sheep. When mills began to beat rags into pulp, the price fell,
and suddenly it made sense to cast letters from metal and to print the same page a thousand times. """
SCIENCE = """Water boils when the pressure of its vapour equals the pressure of the air above it. On a high mountain the air
is thinner, so the water boils at a lower temperature, and an egg needs more time to become hard. """
PYTHON = '''def binary_search(values, wanted):
    """Returns the index of `wanted` in the sorted list `values`, or -1."""
    low, high = 0, len(values) - 1
    while low <= high:
        middle = (low + high) // 2
        if values[middle] == wanted:
            return middle
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle - 1
    return -1


'''
CPP = """#include <vector>

// Returns the sum of all positive numbers.
int SumOfPositives(const std::vector<int>& numbers) {
  int sum = 0;
  for (int number : numbers) {
    if (number > 0) sum += number;
  }
  return sum;
}

"""
DATA = '{"name": "Ada", "born": 1815, "fields": ["mathematics", "computing"], "score": 98.5}\n'
SYSTEM = "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"


def turn(words):
    return f"<|im_start|>user\n{words}<|im_end|>\n<|im_start|>assistant\n"


# (name, text, tokens to keep from its start; None: all)
PROMPTS = [
    ("five tokens", "The capital of France is Paris", 5),
    ("short question", "Why is the sky blue?", None),
    ("numbers", "1, 2, 3, 5, 8, 13, 21, 34,", None),
    ("science", SCIENCE, None),
    ("prose", PROSE, None),
    ("history", HISTORY * 2, 100),
    ("python", PYTHON, None),
    ("cpp", CPP + PYTHON, 180),
    ("data", DATA * 12, 256),
    ("other scripts", "Привет, как дела? 你好，世界。 Ça va? Straße, naïve, 東京 2024. ", None),
    ("one word", "again " * 64, 64),
    ("white space", "a\n\n\n    b\n\t\tc   \n" * 6, None),
    ("chat", SYSTEM + turn("What is the capital of Australia?"), None),
    ("chat with code", SYSTEM + turn("Explain this function:\n" + PYTHON), None),
    ("chat of two turns", SYSTEM + turn("Name three rivers in Europe.") + "The Danube, the Rhine and the Loire.<|im_end|>\n" +
     turn("Which of them is the longest?"), None),
    ("long chat", SYSTEM + turn("Summarise this text:\n" + PROSE * 2 + HISTORY), None),
    ("repeated prose", PROSE * 6, 512),
    ("mixed", HISTORY + CPP + SCIENCE + DATA + PYTHON + PROSE, 700),
    ("repeated code", (PYTHON + CPP) * 8, 1024),
    ("long", (PROSE + HISTORY + PYTHON + SCIENCE + CPP + DATA) * 4, 1500),
]
