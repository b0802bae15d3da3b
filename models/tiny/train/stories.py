"""Makes the text that models/tiny learns from: small stories, and questions about what was said in them long before.

A document is a list of (text, is_answer). Each fact of a story (who has what, who lives where ...) is told once, near its
beginning, among other facts of the same kind; sentences that decide nothing follow; then come the questions.
"""

from words import ANIMALS, FOODS, JOBS, PLACES, Chance

USER, ASSISTANT, END, STOP = "<|im_start|>user\n", "<|im_start|>assistant\n", "<|im_end|>\n", "<|endoftext|>"

OPENINGS = [
    "Once upon a time there was a {adult} named {name}.", "Once there was a {child} called {name}.",
    "There was once a {child} named {name}.", "This is a story about {name}.", "Long ago there lived a {adult} called {name}."]
MEETINGS = [
    "There was also a {child} named {name}.", "{name} was there too.", "Not far away lived {name}.",
    "Then a {adult} called {name} came along.", "One of the neighbours was {name}."]

# Fact: ways to tell it, then (question, answer) pairs. {x} is what the fact is about.
FACTS = {
    "thing": (["{name} had a {x}.", "{name} owned a {x}.", "{name} had found a {x}.", "{name} always carried a {x}."],
              [("Who has the {x}?", "The {x} belongs to {name}."), ("Whose is the {x}?", "The {x} belongs to {name}."),
               ("What does {name} have?", "{name} has a {x}.")]),
    "town": (["{name} lived in {x}.", "{name} came from {x}.", "The home of {name} was in {x}."],
             [("Where does {name} live?", "{name} lives in {x}."), ("Who lives in {x}?", "In {x} lives {name}.")]),
    "food": (["{name} liked {x} best of all.", "{name} loved to eat {x}."],
             [("What does {name} like to eat?", "{name} likes {x}.")]),
    "job": (["{name} worked as a {x}.", "{name} wanted to be a {x}."], [("Who is the {x}?", "The {x} is {name}.")]),
    "pet": (["{name} had a little {animal} called {x}.", "The {animal} of {name} was called {x}."],
            [("What is the {animal} called?", "The {animal} is called {x}."),
             ("Who has the {animal}?", "The {animal} belongs to {name}.")]),
}

MORNINGS = [
    "One morning the sun was warm and the sky was clear.", "It was a cold day, and snow lay on the roofs.",
    "One evening the wind came up from the sea.", "It had rained all night, and the streets were wet.",
    "It was the first day of spring.", "The summer had been long and dry.", "That night the moon was round and bright."]
# What one does: {name}, {he}, {his}, {him}, {place}.
DEEDS = [
    "{name} went to {place} and sat down to rest.", "{name} walked to {place} early in the day.",
    "{name} could not sleep, so {he} went out to {place}.", "{name} looked for a way to {place}, but {he} could not find it.",
    "{name} sang a song while {he} worked.", "{name} counted the birds that flew over {place}.",
    "{name} told a long story about {his} mother.", "{name} ran down to {place} as fast as {he} could.",
    "{name} opened the window and looked at the clouds.", "{name} was tired, but {he} did not want to stop.",
    "{name} heard a strange sound from {place}.", "{name} made a fire and waited.", "{name} wrote a letter to {his} brother.",
    "{name} laughed, because {he} had never seen such a thing.", "{name} climbed on a wall to see {place} better.",
    "{name} lost {his} way near {place} and had to ask for help.", "{name} gave some water to a thirsty bird."]
# What two do together: {name}, {other} and the words of both.
MEETS = [
    "{name} met {other} near {place}, and they talked for an hour.", "{name} asked {other} to come along to {place}.",
    "{name} and {other} walked to {place} together.", "{name} and {other} looked at the water and said nothing.",
    "{name} helped {other} to carry some wood.", "\"Are you coming?\" asked {name}. \"Yes,\" said {other}.",
    "\"I am hungry,\" said {name}. \"So am I,\" said {other}.", "\"It is getting late,\" said {other}, but {name} did not hear it.",
    "{name} was afraid of the dark, and {other} held {his} hand.", "{other} knew a short way to {place}, and {name} went first.",
    "\"What a fine day!\" said {name}, and {other} smiled.", "{name} and {other} sat under a tree and ate their bread."]
# What follows from nothing and changes nothing.
TURNS = [
    "A bird sang in the tree.", "The church bell rang six times.", "The road was long, but nobody was in a hurry.",
    "Soon the stars came out.", "The wind was strong, and the leaves flew over the road.", "Then it was quiet again.",
    "After that it began to rain.", "A boat went by on the water.", "The old people of the place sat by the fire.",
    "Nobody knew what would come next.", "At noon they all ate something warm.", "The next day was even better.",
    "An hour went by, and then another.", "There was a smell of fresh bread in the air.", "A white horse stood at the gate."]
ENDINGS = [
    "In the end they all went home, and they were happy.", "And so the day came to an end.",
    "They never forgot that day.", "When the sun went down, everyone went home.", "From then on they were good friends."]

TELL = ["Tell me a story about {who}.", "Please tell me a story about {who}.", "Can you tell me a story about {who}?",
        "Write a short story about {who}.", "I would like to hear about {who}.", "Tell a story about {who}, please."]
HERE = ["Here is a story. ", "Listen to this story: ", "Please read this. ", "", "I will tell you something. "]
SYSTEMS = ["You tell small stories and answer questions about them.", "You are a helpful storyteller.", "You are a friendly assistant."]
PLEASANTRIES = [
    (["Hello!", "Hi!", "Hello, how are you?", "Good morning!", "Hi there.", "Hey!"],
     "Hello! I am a very small model. I can tell you a story, and then you can ask me about it."),
    (["Who are you?", "What are you?", "What is your name?", "Are you a person?", "Tell me about yourself."],
     "I am a very small language model. I was made to test a server, and all I know is small stories."),
    (["What can you do?", "Help!", "How does this work?", "What do you know?", "Can you help me?"],
     "I can tell small stories. Ask me for a story about someone with a red kite, and then ask who has it."),
    (["Thank you!", "Thanks.", "That was nice.", "Goodbye!", "Bye.", "Good night."], "You are welcome. Come back for another story."),
    (["What is the capital of France?", "How much is two and two?", "Why is the sky blue?", "Write some code.", "Explain the moon.",
      "What is the weather today?", "Who won the race?", "What is a computer?", "How do I learn to swim?", "What is the largest sea?"],
     "I am too small to know that. All I know is small stories."),
]


class Fact:
    """Something that a story tells once. Owner: the story."""

    def __init__(self, chance, kind, person, taken):
        self.kind = kind
        self.words = dict(vars(person))
        self.words["His"] = person.his.capitalize()
        if kind == "thing":
            self.words["x"] = chance.thing(taken)
        elif kind == "town":
            self.words["x"] = chance.town(taken)
        elif kind == "pet":
            self.words["x"] = chance.pet_name(taken)
            self.words["animal"] = unused(chance, ANIMALS, taken)
        else:
            self.words["x"] = unused(chance, FOODS if kind == "food" else JOBS, taken)

    def told(self, chance):
        return chance.choice(FACTS[self.kind][0]).format(**self.words)

    def asked(self, chance, which=None):
        pairs = FACTS[self.kind][1]
        question, answer = pairs[which] if which is not None else chance.choice(pairs)
        return question.format(**self.words), answer.format(**self.words)


def unused(chance, words, taken):
    word = chance.choice([w for w in words if w not in taken])
    taken.add(word)
    return word


def filler(chance, people):
    """A sentence that decides nothing that will be asked."""
    kind = chance.random()
    person = chance.choice(people)
    words = dict(vars(person), place=chance.choice(PLACES))
    others = [p for p in people if p is not person]
    if kind < 0.45 or (kind < 0.8 and not others):
        return chance.choice(DEEDS).format(**words)
    if kind < 0.8:
        return chance.choice(MEETS).format(other=chance.choice(others).name, **words)
    return chance.choice(TURNS)


class Story:
    """People, what is told of them at the beginning, and sentences to come after."""

    def __init__(self, chance, num_people, num_facts, num_fillers):
        taken = set()
        self.chance = chance
        self.people = [chance.person(taken) for _ in range(num_people)]
        self.facts = [Fact(chance, "thing", person, taken) for person in self.people]
        kinds = {(person, "thing") for person in self.people}
        while len(self.facts) < num_facts:
            person, kind = chance.choice(self.people), chance.choice(["town", "food", "job", "pet"])
            if (person, kind) not in kinds:
                kinds.add((person, kind))
                self.facts.append(Fact(chance, kind, person, taken))
        self.beginning = self._beginning()
        self.rest = self._rest(num_fillers)

    def _beginning(self):
        sentences = []
        for index, person in enumerate(self.people):
            sentences.append(self.chance.choice(MEETINGS if index else OPENINGS).format(**vars(person)))
            mine = [f for f in self.facts if f.words["name"] == person.name]
            sentences += [f.told(self.chance) for f in mine]
        return sentences

    def _rest(self, num_fillers):
        if num_fillers == 0:
            return []
        sentences = [self.chance.choice(MORNINGS)]
        while len(sentences) < num_fillers:
            sentence = filler(self.chance, self.people)
            if sentence not in sentences[-6:]:
                sentences.append(sentence)
        return sentences + [self.chance.choice(ENDINGS)]

    def paragraphs(self):
        """Everything, with a new line now and then."""
        lines = [" ".join(self.beginning)]
        begin = 0
        while begin < len(self.rest):
            length = self.chance.randint(4, 8)
            lines.append(" ".join(self.rest[begin:begin + length]))
            begin += length
        return "\n".join(lines)

    def who(self):
        """What one asks for to be told this story."""
        first = self.facts[0].words
        words = [f"{first['name']} and a {first['x']}", f"a {first['child']} named {first['name']} who has a {first['x']}",
                 f"{first['name']} who has a {first['x']}", f"a {first['adult']} called {first['name']} with a {first['x']}"]
        if len(self.people) > 1:
            second = self.facts[1].words
            words += [f"{first['name']} and {second['name']}",
                      f"{first['name']} who has a {first['x']} and {second['name']} who has a {second['x']}"]
        return self.chance.choice(words)

    def questions(self, limit):
        facts = list(self.facts)
        self.chance.shuffle(facts)
        return [f.asked(self.chance) for f in facts[:limit]]


def in_turns(chance, parts):
    """A conversation: parts are (words of the user, words of the assistant)."""
    document = []
    if chance.random() < 0.15:
        document.append(("<|im_start|>system\n" + chance.choice(SYSTEMS) + END, False))
    for user, assistant in parts:
        document += [(USER + user + END + ASSISTANT, False), (assistant + "<|im_end|>", True), ("\n", False)]
    return document


def told_to_order(chance, story):
    ask = chance.choice(TELL).format(who=story.who())
    document = in_turns(chance, [(ask, story.paragraphs())] + story.questions(4))
    return [(text, is_answer and len(text) < 100) for text, is_answer in document]


def told_by_user(chance, story):
    questions = story.questions(4)
    first = chance.choice(HERE) + story.paragraphs() + chance.choice(["\n", " "]) + questions[0][0]
    return in_turns(chance, [(first, questions[0][1])] + questions[1:])


def examined(chance, story):
    document = [(story.paragraphs() + "\n", False)]
    for question, answer in story.questions(5):
        document += [(f"Question: {question}\nAnswer:", False), (f" {answer}\n", True)]
    return document


def listed(chance, num_people):
    """Nothing but facts and questions: where copying is learnt first."""
    story = Story(chance, num_people, num_people * 2, 0)
    sentences = [f.told(chance) for f in story.facts]
    chance.shuffle(sentences)
    questions = story.questions(8)
    return in_turns(chance, [(" ".join(sentences) + " " + questions[0][0], questions[0][1])] + questions[1:])


def pleasant(chance):
    pairs = [(chance.choice(asks), answer) for asks, answer in chance.sample(PLEASANTRIES, chance.randint(1, 2))]
    return in_turns(chance, pairs)


def document(chance, max_fillers, share_of_lists):
    """One document, ended by the end-of-text token."""
    kind = chance.random()
    if kind < share_of_lists:
        made = listed(chance, chance.randint(2, 5))
    elif kind < share_of_lists + 0.04:
        made = pleasant(chance)
    else:
        num_people = chance.choice([1, 2, 2, 3, 3, 4])
        num_facts = num_people + chance.randint(0, 3)
        story = Story(chance, num_people, min(num_facts, num_people * 4), chance.randint(3, max_fillers))
        made = chance.choice([told_to_order, told_to_order, told_by_user, examined])(chance, story)
    return made + [(STOP, True)]


def documents(seed, max_fillers, share_of_lists):
    chance = Chance(seed)
    while True:
        yield document(chance, max_fillers, share_of_lists)
