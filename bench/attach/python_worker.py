"""Plain Python that is busy for ever."""


def shuffle(rows):
    out = []
    for at in range(len(rows)):
        out.append(rows[(7 * at) % len(rows)])
    return out


print("ready", flush=True)
rows = list(range(500))
while True:
    rows = shuffle(rows)
