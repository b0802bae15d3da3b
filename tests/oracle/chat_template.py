"""Writes a golden of text/chat_template: what jinja2 makes of templates, set up as transformers sets it up.

    pip install -r tests/oracle/chat_template_requirements.txt
    python tests/oracle/chat_template.py

jinja_expressions.json: some thousand small templates, each with its output, or null where jinja2 raises.
"""

import datetime
import itertools
import json
import pathlib
import warnings

import jinja2
import jinja2.ext
import jinja2.sandbox

GOLDENS = pathlib.Path(__file__).resolve().parent.parent / "text" / "goldens"

BOS, EOS = "<s>", "</s>"
UNIX_SECONDS = 1_795_968_000 + 5 * 3600 + 6 * 60 + 7  # a Sunday
MESSAGES = [
    {"role": "system", "content": "  Be brief.\n"},
    {"role": "user", "content": "h\u00e9 \u4f60\u597d \U0001f427 \"q\" \\ \t\u0001<|im_end|>"},
    {"role": "assistant", "content": ""},
    {"role": "user", "content": "a,b,,c"},
]


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment():
    made = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols])
    made.filters["tojson"] = tojson
    made.globals["raise_exception"] = raise_exception
    made.globals["strftime_now"] = lambda form: datetime.datetime.fromtimestamp(UNIX_SECONDS, datetime.timezone.utc).strftime(form)
    return made


def render(template, messages, add_generation_prompt=True):
    return environment().from_string(template).render(
        messages=messages, tools=None, documents=None, add_generation_prompt=add_generation_prompt,
        bos_token=BOS, eos_token=EOS)


VALUES = ["none", "true", "false", "0", "-7", "3", "''", "'abc'", "'\u00e9\u4f60x'", "[]", "[1, 2, 3]", "['b', 'a']",
          "{}", "{'a': 1, 'b': [2]}", "missing", "messages", "messages[0]", "messages[1].content"]
SPACES = ["{% if true %}", "{%- if true %}", "{% if true -%}", "{%- if true -%}", "{%+ if true %}", "{% if true +%}"]


def binary_cases():
    small = ["none", "true", "7", "-3", "'ab'", "'a'", "[1]", "missing", "{'a': 1}"]
    for op in ["+", "-", "*", "//", "%", "~", "==", "!=", "<", ">=", "in", "not in", "and", "or"]:
        for a, b in itertools.product(small, small):
            if op in ("*", "%") and ("'" in a or "'" in b or "[" in a or "[" in b):
                continue  # repetition and formatting: refused, tested by name
            yield "{{ (%s %s %s) | tojson }}" % (a, op, b)


def value_cases():
    tests = ["defined", "undefined", "none", "string", "boolean", "integer", "number", "mapping", "sequence", "iterable",
             "true", "false"]
    filters = ["trim", "tojson", "tojson(indent=2)", "length", "count", "default('d')", "default('d', true)",
               "d(default_value='e')", "join", "join(', ')", "join(d='-')", "first", "last", "list|length", "string"]
    links = [".a", "['a']", "[0]", "[-1]", "[99]", "[true]", ".content", ".b[0]", "[1:]", "[:-1]", "[::-1]", "[1:2]",
             "[::2]", "[-2:]", "[5:1:-2]", "[:]", "[none:1]"]
    for value in VALUES:
        for test in tests:
            yield "{{ %s is %s }}|{{ %s is not %s }}" % (value, test, value, test)
        for name in filters:
            yield "{{ %s|%s|tojson }}" % (value, name)
        for link in links:
            yield "{{ (%s)%s|tojson }}" % (value, link)
        yield "{{ not %s }}" % value
        yield "{{ -%s }}" % value
        yield "{{ 'y' if %s else 'n' }}" % value
        yield "{%% for x in %s %%}[{{ loop.index }}/{{ loop.length }}]{%% else %%}none{%% endfor %%}" % value
        if "[" not in value and "{" not in value and value != "messages":
            yield "{{ %s }}" % value


def space_cases():
    for before, open_tag, after in itertools.product(["a", "a ", "a\n", "a\n  ", "  ", "\t\n \t"], SPACES, ["b", " b", "\nb", "\n\n  b"]):
        yield before + open_tag + after + "{% endif %}\nc"
    for tag in ["{{ 'x' }}", "{{- 'x' }}", "{{ 'x' -}}", "{{- 'x' -}}", "{{+ 1 }}", "{# x #}", "{#- x #}", "{# x -#}", "{#+ x #}",
                "{# x +#}", "{#-#}", "{#--#}", "{# a\nb #}"]:
        for before, after in itertools.product(["a \n ", "a ", " ", ""], ["\n b", " \n\nb", "", "\n"]):
            yield before + tag + after
    yield from ["{% if true %}\r\nx\r\n  {% endif %}\r\ny\ry", "x\n", "x\n\n", "\n", "", "  {% set x = 1 %}  \n  {{ x }}",
                "{% if true %} {% if true %} x{% endif %} {% endif %}", "\u2003{% if true %}\u2003x{% endif %}",
                "a\u00a0{%- if true -%}\u3000x{% endif %}", "{{ '{{' }}{{ '%}' }}{{ \"}}\" }}", "{{ {'a': {'b': 1}}['a']['b'] }}",
                "{ {{ 1 }} } {% if 1 %}%}{% endif %} {", "{{-1}}", "a {{ -1 }}", "x {%- set y = 1 +%} \n z"]


def handwritten_cases():
    return [
        # scopes
        "{% set x = 0 %}{% for i in [1, 2, 3] %}{{ x }}{% set x = i %}{{ x }}{% endfor %}{{ x }}",
        "{% for i in [1, 2] %}{% if i == 2 %}{{ y is defined }}{% endif %}{% set y = i %}{% endfor %}{{ y is defined }}",
        "{% if true %}{% set z = 5 %}{% endif %}{{ z }}",
        "{% set ns = namespace(n=0, s='') %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% set ns.s = ns.s ~ m.role[0] %}{% endfor %}{{ ns.n }}{{ ns.s }}",
        "{% set ns = namespace() %}{{ ns.a is defined }}{% set ns.a = [1] %}{{ ns.a[0] }}{{ ns['a'] | tojson }}",
        "{% set x = 1 %}{% set x.y = 2 %}", "{% set missing.y = 2 %}",
        "{% for i in [1, 2] %}{% for j in [3, 4] %}{{ loop.index }}{{ i }}{{ j }} {% endfor %}{{ loop.index }}{% endfor %}",
        "{% for i in [1, 2] %}{{ i }}{% endfor %}{{ i is defined }}{{ loop is defined }}",
        "{% for i in [1,2] %}{% set outer = loop %}{% for j in [5] %}{{ outer.index }}{{ loop.index }}{% endfor %}{% endfor %}",
        "{% for i in [] %}x{% else %}{% set q = 1 %}none{{ q }}{% endfor %}{{ q is defined }}",
        "{% set m = messages %}{% set messages = m[1:] %}{{ messages | length }}{{ m | length }}",
        # loop variables
        "{% for m in messages %}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.depth }}{{ loop.depth0 }} {% endfor %}",
        "{% for c in 'a\u00e9b' %}{{ loop.previtem }}<{{ c }}>{{ loop.nextitem }} {% endfor %}",
        "{% for i in [1,2,3] %}{{ loop.previtem is defined }}{{ loop.nextitem is undefined }}{{ loop.nothing }}{% endfor %}",
        "{% for k in {'a': 1, 'b': 2} %}{{ k }}{% endfor %}", "{% for i in 5 %}{% endfor %}", "{% for i in none %}{% endfor %}",
        "{% for i in [1,2] %}{{ loop is iterable }}{{ loop is sequence }}{{ loop|length }}{{ loop is mapping }}{% endfor %}",
        # if
        "{% if false %}a{% elif messages|length > 3 %}b{% elif true %}c{% else %}d{% endif %}",
        "{% if missing %}a{% elif '' %}b{% else %}d{% endif %}", "{% if not missing and not none %}x{% endif %}",
        "{{ 'a' if false }}|{{ ('a' if false) is defined }}", "{{ 1 if 0 else 2 if 0 else 3 }}", "{{ 1 if missing is defined else 2 }}",
        # precedence
        "{{ 1 + 2 * 3 }}", "{{ (1 + 2) * 3 }}", "{{ 7 // 2 - 7 % 3 }}", "{{ 10 - 3 - 2 }}", "{{ 2 * 3 ~ 4 + 1 }}" , "{{ 1 ~ 2 + 3 }}",
        "{{ 1 + 2 ~ 3 }}", "{{ not 1 == 2 }}", "{{ not true and false }}", "{{ true or false and false }}", "{{ 1 < 2 < 3 }}", "{{ 1 < 3 < 2 }}",
        "{{ 1 == true == 1 }}", "{{ 'a' in 'abc' and 'z' not in 'abc' }}", "{{ 'a' 'b' \"c\" }}",
        "{{ -1|string }}", "{{ - 1 + 2 }}", "{{ --1 }}", "{{ +3 }}", "{{ -messages|length }}", "{{ messages|length - 1 }}", "{{ 'a' ~ 'b'|trim ~ ' c '|trim }}",
        "{{ 1 in [1] == true }}", "{{ not 'a' in 'b' }}", "{{ 3 not in [1, 2] }}", "{{ 1 is defined and 2 }}", "{{ 1 is string or 'x' }}",
        # and, or give their operand
        "{{ '' or 'b' }}", "{{ 'a' and 'b' }}", "{{ missing or 'x' }}", "{{ (none and 1) is none }}", "{{ 0 or none }}", "{{ (missing and 1) is defined }}",
        # attributes and subscripts
        "{{ messages[0].role }}{{ messages[0]['role'] }}{{ messages[-1]['content'] }}", "{{ messages[9].role }}", "{{ messages[9] }}",
        "{{ missing.a }}", "{{ missing['a'] }}", "{{ missing[0] }}", "{{ messages[0].nothing }}", "{{ messages[0].nothing.more }}", "{{ none.a }}", "{{ 5 .a }}",
        "{{ {'a': 1}.a }}", "{{ {'a': 1}['b'] is defined }}", "{{ {1: 'x', none: 'y', true: 'z'} | tojson }}", "{{ {'a': 1, 'a': 2} | tojson }}",
        "{{ {[1]: 2} }}", "{{ {'a': 1}[[1]] is defined }}", "{{ [1] in {'a': 1} }}", "{{ messages.0.role }}", "{{ [[1, 2], [3]][0][1] }}", "{{ {'items': 1}['items'] }}",
        "{{ 'abc'[1] }}{{ '\u4f60\u597d'[-1] }}{{ 'a'[5] }}", "{{ 'abc'.nothing is defined }}", "{{ [1].nothing is defined }}",
        "{{ messages[1:3]|length }}",
        # order
        "{{ [1, 2] < [1, 3] }}{{ [1] < [1, 0] }}{{ 'a' < 'b' }}{{ '\uffff' < '\U0001f427' }}{{ true < 2 }}", "{{ [1] < 2 }}", "{{ {} < {} }}", "{{ none < 1 }}", "{{ missing < 1 }}",
        "{{ [1, [2, {'a': 3}]] == [1, [2, {'a': 3}]] }}", "{{ {'a': 1, 'b': 2} == {'b': 2, 'a': 1} }}", "{{ missing == none }}", "{{ missing == other }}", "{{ 1 == '1' }}",
        # strings
        "{{ 'tab\\tnl\\nq\\'q\\\"b\\\\x\\x41u\\u00e9U\\U0001f427o\\101z\\q' }}", "{{ 'a\\\nb' }}", "{{ \"it's\" }}", "{{ '\\u4f60' ~ '\\0' }}", "{{ 'multi\nline' }}",
        "{{ ' \\u00a0\\u2003 x \\n\\x1c' | trim }}|", "{{ 'xxaxx'|trim('x') }}", "{{ 'xyaxy'|trim(chars='yx') }}", "{{ 5|trim }}", "{{ none|trim }}",
        "{{ '  a b  '.strip() }}|{{ '  a b  '.lstrip() }}|{{ '  a b  '.rstrip() }}|", "{{ '\u00e9a\u00e9'.strip('\u00e9') }}", "{{ 'aab'.lstrip('a') }}{{ 'baa'.rstrip('a') }}",
        "{{ ''.strip() }}|{{ '   '.strip() }}|{{ 'a'.strip('') }}|{{ ' a '.strip(none) }}", "{{ 'a'.strip(1) }}", "{{ [1].strip() }}", "{{ missing.strip() }}",
        "{{ 'abc'.startswith('ab') }}{{ 'abc'.endswith('bc') }}{{ 'abc'.startswith('') }}{{ 'abc'.endswith('abcd') }}", "{{ 'abc'.startswith(1) }}",
        "{{ 'a,b,,c'.split(',') | tojson }}", "{{ ' a  b\\tc '.split() | tojson }}", "{{ ''.split(',') | tojson }}", "{{ ''.split() | tojson }}", "{{ 'aaaa'.split('aa') | tojson }}", "{{ 'a'.split('') }}",
        "{{ 'x</think>y</think>z'.split('</think>')[-1] }}", "{{ 'a b'.split(none) | tojson }}", "{{ messages[3].content.split(',') | join('+') }}",
        "{{ messages[0].get('role') }}{{ messages[0].get('no') }}{{ messages[0].get('no', 'd') }}", "{{ 'a'.get('b') }}",
        # filters
        "{{ messages | tojson }}", "{{ messages | tojson(indent=2) }}", "{{ [] | tojson(indent=4) }}{{ {} | tojson(indent=4) }}", "{{ [[1, {}], {'a': []}] | tojson(indent=1) }}", "{{ [1, 2] | tojson(indent=0) }}",
        "{{ missing | tojson }}", "{{ [missing] | tojson }}", "{{ '\\x00\\x1f\\x7f\\u2028/' | tojson }}", "{{ namespace(a=1) | tojson }}",
        "{{ missing | default }}|{{ missing | default('x') | length }}", "{{ none | default('x') }}{{ none | default('x', true) }}{{ 'v' | default('x', true) }}", "{{ messages[0].name | default('anon') }}",
        "{{ [1, none, true, 'x'] | join('-') }}", "{{ [1, 2] | join(none) }}", "{{ [] | join(',') }}", "{{ missing | join(',') }}", "{{ 5 | join }}", "{{ 'abc' | join(',') }}",
        "{{ [] | first is defined }}{{ '' | last is defined }}", "{{ 'x\u00e9' | length }}", "{{ namespace() | length }}", "{{ messages | first | length }}", "{{ (messages | last).content }}",
        # errors
        "{{ raise_exception('no: ' ~ messages|length) }}", "{% if false %}{{ raise_exception('x') }}{% endif %}ok", "{{ 1 // 0 }}", "{{ 1 % 0 }}", "{{ [1][::0] }}", "{{ 'a' + 1 }}", "{{ 'a' + missing }}", "{{ missing + 'a' }}", "{{ missing ~ 'a' }}",
        "{{ 'abc'['a':] }}", "{{ 1[1:] }}", "{{ missing[1:] }}", "{{ none[1:] }}", "{{ 1 in 2 }}", "{{ 1 in 'a' }}", "{{ missing in 'a' }}",
        # syntax errors
        "{{ }}", "{{ 1 + }}", "{{ (1 }}", "{{ 1) }}", "{{ [1, }}", "{{ 1 2 }}", "{% if %}{% endif %}", "{% if 1 %}", "{% endif %}", "{% for x %}{% endfor %}", "{% for x in [1] %}", "{% set = 1 %}", "{% set x 1 %}", "{{ 'open }}", "{{ 1", "{% if 1", "{# open", "{{ a.  }}",
        "{{ a[ ] }}", "{{ {1} }}", "{{ {1: } }}", "{{ x is }}", "{{ x | }}", "{{ 1 if }}", "{{ ? }}", "{% else %}", "{% if 1 %}{% endfor %}", "{% unknown %}", "{% %}", "{{ x is defined is none }}", "{% set true = 1 %}", "{% for loop in [1] %}{% endfor %}", "{{ a = 1 }}", "{% if a = 1 %}{% endif %}",
        "{{ default(1 }}", "{{ [1 2] }}", "{{ 'a' | trim( }}", "{% if 1 %}{% else %}{% else %}{% endif %}", "{% if 1 %}{% else %}{% elif 1 %}{% endif %}",
        # selections and mappings
        "{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | join('|') }}",
        "{{ messages | rejectattr('role', 'in', ['user', 'system']) | list | tojson }}", "{{ messages | selectattr('content') | list | length }}",
        "{{ messages | selectattr('nothing', 'defined') | list | tojson }}{{ messages | rejectattr('nothing') | list | length }}",
        "{{ [{'a': {'b': [1, 5]}}, {'a': {'b': [2, 6]}}] | selectattr('a.b.1', '>', 5) | list | tojson }}", "{{ [1, 2] | selectattr('a.b') | list }}",
        "{{ [1, 0, none, '', 'x', missing] | select | list | tojson }}{{ [1, 0, 'x'] | reject | list | tojson }}",
        "{{ [1, 2, 3, 4] | select('odd') | list | tojson }}{{ [1, 2, 3, 4] | reject('divisibleby', 3) | list | tojson }}{{ [1, 'a'] | select('string') | list | tojson }}",
        "{{ [1, 'a'] | select('even') | list }}", "{{ ['b', 'c'] | reject('equalto', 'c') | join(', ') + '!' }}", "{{ 'abc' | select('ne', 'b') | join }}",
        "{{ messages | selectattr('role', 'equalto', 'user') | length }}", "{{ (messages | selectattr('role', 'equalto', 'user'))[0] is defined }}",
        "{{ (messages | selectattr('role', 'equalto', 'user')) | tojson }}", "{{ (messages | selectattr('role', 'equalto', 'x')) is iterable }}{{ ([] | select) is sequence }}",
        "{% if messages | selectattr('role', 'equalto', 'nobody') %}a stream is true{% endif %}", "{{ messages | selectattr('role', 'equalto', 'user') | first | tojson }}",
        "{{ ['a ', ' b'] | map('trim') | list | tojson }}{{ ['aB', 'c'] | map('upper') | join }}{{ [[1], [2, 3]] | map('length') | list | tojson }}",
        "{{ [{'a': 1}, {}] | map(attribute='a', default='d') | list | tojson }}{{ [{'a': 1}, {}] | map(attribute='a') | join(',') }}", "{{ 5 | map('trim') | list }}", "{{ [1] | map(attribute='a.b') | list }}",
        # dicts taken apart
        "{% for k, v in {'a': 1, 'b': [2]}.items() %}{{ k }}={{ v | tojson }}{{ '' if loop.last else ';' }}{% endfor %}",
        "{% for k, v in {'a': 1, 'b': 2} | items %}{{ loop.index }}{{ k }}{{ v }}{% endfor %}", "{% for k, v in missing | items %}x{% else %}none{% endfor %}", "{{ 5 | items | list }}",
        "{% for k, v in {'a': 1, 'b': 2, 'c': 3}.items() if k != 'b' %}{{ loop.index }}/{{ loop.length }}{{ k }}{{ v }}{{ loop.last }}{{ loop.previtem | tojson }} {% endfor %}",
        "{{ {'a': 1}.keys() | list | tojson }}{{ {'a': 1}.values() | list | tojson }}{{ {'a': 1, 'b': 2}.items() | length }}{{ {'a': 1}.items() | list | tojson }}",
        "{{ {'a': 1}.items() | tojson }}", "{{ {'a': 1}.items()[0] is defined }}{{ {}.items() is iterable }}{{ {}.keys() is sequence }}{{ 'y' if {}.items() else 'n' }}", "{{ 'a' in {'a': 1}.keys() }}{{ 2 in {'a': 1}.values() }}", "{{ [].items() }}", "{{ missing.items() }}",
        "{% for a, b in [[1, 2], 'xy', {'k': 1, 'l': 2}] %}{{ a }}{{ b }};{% endfor %}", "{% for a, b in [[1, 2, 3]] %}{% endfor %}", "{% for a, b in [1] %}{% endfor %}", "{% for a, b, c in ['abc'] %}{{ c }}{{ a }}{% endfor %}{{ a is defined }}",
        # for with a condition
        "{% for i in [1, 2, 3, 4] if i is even %}{{ i }}{{ loop.index }}{{ loop.length }}{% else %}none{% endfor %}", "{% for i in [1, 3] if i is even %}{{ i }}{% else %}none{% endfor %}",
        "{% for m in messages if m.role == 'user' and m.content %}{{ loop.index0 }}{% endfor %}", "{% for i in [1, 2] if missing.x %}{% endfor %}", "{% for i in [1, 2, 3] if i != x | default(2) %}{{ i }}{% endfor %}{{ i is defined }}",
        "{% for i in [1, 2] if (i if i > 1 else false) %}{{ i }}{% endfor %}", "{% for loop in [1] if loop %}{% endfor %}", "{% for a, loop in [[1, 2]] %}{% endfor %}",
        # tests with an argument
        "{{ 4 is divisibleby 2 }}{{ 4 is divisibleby(3) }}{{ -3 is odd }}{{ 0 is even }}{{ true is odd }}", "{{ 4 is divisibleby(0) }}", "{{ 'a' is divisibleby 2 }}", "{{ 1 is divisibleby 'a' }}", "{{ 'a' is odd }}",
        "{{ 1 is in [1, 2] }}{{ 3 is not in [1, 2] }}{{ 'a' is in 'abc' }}{{ 1 is eq 1 }}{{ 1 is equalto(2) }}{{ 1 is ne 2 }}{{ 1 is lt 2 }}{{ 2 is le 2 }}{{ 3 is gt 2 }}{{ 2 is ge 3 }}{{ 1 is lessthan 2 }}{{ 1 is greaterthan(2) }}",
        "{{ messages[0].role is eq messages[0]['role'] }}", "{{ 1 is eq 1 and 2 is eq 2 }}", "{{ 1 is eq(1) or false }}", "{{ 1 is lt 'a' }}", "{{ 1 is eq }}", "{{ 1 is in }}", "{{ 1 is eq(1, 2) }}", "{{ 1 is float }}{{ 'x' is float }}",
        # more strings
        "{{ 'aBc'.upper() }}{{ 'aBc'.lower() }}{{ 'aBc'.capitalize() }}{{ 'aBc' | upper }}{{ 'aBc' | lower }}{{ 'aBc' | capitalize }}{{ ''.capitalize() }}{{ 5 | upper }}{{ none | lower }}",
        "{{ 'aXbXc'.replace('X', '--') }}{{ 'aaa'.replace('a', 'b', 2) }}{{ 'aaa'.replace('aa', 'b') }}{{ 'aXbX' | replace('X', '') }}{{ 'aaa' | replace('a', 'b', 1) }}{{ 'aaa' | replace('a', 'b', count=2) }}{{ 'abc'.replace('z', 'y') }}",
        "{{ 'a'.replace(1, 'b') }}", "{{ 'a'.replace('a', none) }}", "{{ 'aaa'.replace('a', 'b', 0) }}{{ 'aaa'.replace('a', 'b', -1) }}", "{{ 'a' | safe }}", "{{ [1].upper() }}",
        # range
        "{% for i in range(3) %}{{ i }}{% endfor %}{% for i in range(1, 7, 3) %}{{ i }}{% endfor %}{% for i in range(3, 0, -1) %}{{ i }}{% endfor %}{% for i in range(2, 2) %}x{% else %}none{% endfor %}",
        "{{ range(5) | length }}{{ range(3)[1] }}{{ range(0) | list | tojson }}", "{{ range(1, 2, 0) }}", "{{ range('a') }}", "{{ range() }}", "{% for i in range(messages | length) %}{{ messages[i].role }}{% endfor %}",
        # functions as names
        "{{ raise_exception is defined }}{{ range is defined }}{{ namespace is defined }}{{ strftime_now is defined }}{{ nothing_here is defined }}", "{{ strftime_now('%d %b %Y|%A %a %B %H:%M:%S %y %m %j %I %p %%') }}", "{{ strftime_now('') }}|{{ strftime_now('100') }}", "{{ strftime_now() }}",
        "{%- if strftime_now is defined %}{%- set date_string = strftime_now('%d %b %Y') %}{%- else %}{%- set date_string = '26 Jul 2024' %}{%- endif %}{{ date_string }}",
        # the shape of other models' templates
        "{{ bos_token }}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{% endif %}{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + ' [/INST]' }}{% elif message['role'] == 'assistant' %}{{ message['content'] + eos_token }}{% endif %}{% endfor %}",
        "{%- if messages[0]['role'] == 'system' %}\n    {%- set system_message = messages[0]['content'] | trim %}\n    {%- set loop_messages = messages[1:] %}\n{%- else %}\n    {%- set loop_messages = messages %}\n{%- endif %}\n{{ system_message }}\n{%- for message in loop_messages %}\n    {{- '<|' + message.role + '|>\\n' + message['content'] | trim + '\\n' }}\n{%- endfor %}\n{%- if add_generation_prompt %}\n    {{- '<|assistant|>\\n' }}\n{%- endif %}\n",
        "{% set ns = namespace(found=false) %}{% for m in messages[::-1] %}{% if not ns.found and m.role == 'user' %}{% set ns.found = true %}{{ m.content }}{% endif %}{% endfor %}",
        "{%- if tools %}{{ tools | tojson }}{%- elif tools is none %}no tools{%- endif %}{{ tools is defined }}{{ documents is none }}",
        "{% for m in messages %}{% if loop.first and m.role != 'system' %}x{% endif %}{% if m.content is string %}{{ m.content }}{% else %}{% for part in m.content %}{{ part.text }}{% endfor %}{% endif %}{% if not loop.last %}{{ '\\n' }}{% endif %}{% endfor %}",
        "{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}{{ add_generation_prompt }}",
    ]


def expressions():
    seen = {}
    for template in itertools.chain(binary_cases(), value_cases(), space_cases(), handwritten_cases()):
        if template in seen:
            continue
        try:
            seen[template] = render(template, MESSAGES)
        except Exception:  # any refusal is one; its words are jinja2's own
            seen[template] = None
    return [[template, output] for template, output in seen.items()]


def write(name, value):
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    (GOLDENS / name).write_text(text.replace("],[", "],\n[").replace("},{\"add", "},\n{\"add") + "\n")


def main():
    warnings.simplefilter("ignore", SyntaxWarning)  # of the code jinja2 makes
    write("jinja_expressions.json", {"bos_token": BOS, "eos_token": EOS, "unix_seconds": UNIX_SECONDS, "messages": MESSAGES,
                                    "cases": expressions()})


if __name__ == "__main__":
    main()
