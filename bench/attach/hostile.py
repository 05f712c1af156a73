"""Servers that mean harm, in plain HTTP/2 by hand: hostile.py KIND, prints its port.

  endless   a stream of profiles, 64 MB each, until 10 GB or until nobody listens
  huge      one message that is said to be 4 GB, sent as fast as it is taken
  garbage   random bytes as a profile
  drip      one message of 100 MB, a byte at a time
  mute      accepts and says nothing
  noise     random bytes instead of HTTP/2
"""
import os
import socket
import struct
import sys
import threading
import time

DATA, HEADERS, SETTINGS, PING, WINDOW_UPDATE = 0, 1, 4, 6, 8
END_STREAM, ACK, END_HEADERS = 1, 1, 4
FRAME = 16384
MB = 1 << 20


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def literal(name, value):
    """A header that HPACK neither compresses nor remembers."""
    return bytes([0, len(name)]) + name + bytes([len(value)]) + value


def varint(number):
    out = bytearray()
    while True:
        number, byte = number >> 7, number & 0x7F
        out.append(byte | (0x80 if number else 0))
        if not number:
            return bytes(out)


class Connection:
    """Reads what comes in a thread of its own, so that windows are known when sending."""

    def __init__(self, sock):
        self.sock, self.window, self.stream, self.sent = sock, {0: 65535}, None, 0
        self.initial, self.changed, self.asked, self.open = 65535, threading.Condition(), threading.Event(), True
        self.read(24)
        sock.sendall(frame(SETTINGS, 0, 0))
        threading.Thread(target=self.listen, daemon=True).start()

    def read(self, n):
        out = b""
        while len(out) < n:
            part = self.sock.recv(n - len(out))
            if not part:
                raise ConnectionError
            out += part
        return out

    def listen(self):
        try:
            while True:
                head = self.read(9)
                length, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
                stream, body = int.from_bytes(head[5:], "big"), self.read(length)
                with self.changed:
                    if kind == SETTINGS and not flags & ACK:
                        for at in range(0, length, 6):
                            key, value = struct.unpack(">HI", body[at : at + 6])
                            self.initial = value if key == 4 else self.initial
                        self.sock.sendall(frame(SETTINGS, ACK, 0))
                    elif kind == PING and not flags & ACK:
                        self.sock.sendall(frame(PING, ACK, 0, body))
                    elif kind == WINDOW_UPDATE:
                        more = int.from_bytes(body, "big")
                        self.window[stream] = self.window.get(stream, self.initial) + more
                    elif kind == DATA and flags & END_STREAM:
                        self.stream = stream
                        self.asked.set()
                    self.changed.notify_all()
        except (ConnectionError, OSError):
            with self.changed:
                self.open = False
                self.changed.notify_all()
            self.asked.set()

    def headers(self, *pairs, end=False):
        flags = END_HEADERS | (END_STREAM if end else 0)
        self.sock.sendall(frame(HEADERS, flags, self.stream, b"".join(literal(*it) for it in pairs)))

    def send(self, data):
        """Sends as the windows allow; False when nobody listens any more."""
        while data:
            with self.changed:
                room = lambda: min(self.window[0], self.window.setdefault(self.stream, self.initial))
                self.changed.wait_for(lambda: not self.open or room() > 0)
                if not self.open:
                    return False
                part = data[: min(FRAME, room())]
                self.window[0] -= len(part)
                self.window[self.stream] -= len(part)
            try:
                self.sock.sendall(frame(DATA, 0, self.stream, part))
            except OSError:
                return False
            self.sent += len(part)
            data = data[len(part) :]
        return True


def message(length):
    """The heads of a message, and in it of a profile, of so many bytes."""
    field = b"\x42" + varint(length)
    return b"\0" + struct.pack(">I", min(length + len(field), 2**32 - 1)) + field


def answer(kind, connection):
    connection.asked.wait()
    if not connection.open:
        return
    connection.headers((b":status", b"200"), (b"content-type", b"application/grpc"))
    block = b"\x0a" + varint(MB - 4) + bytes(MB - 4)  # A plane of a profile, or so it looks.
    if kind == "endless":
        while connection.sent < 10_000 * MB and connection.send(message(64 * len(block)) + block):
            for _ in range(63):
                connection.send(block)
    elif kind == "huge":
        connection.send(message(2**32 - 20))
        while connection.send(block):
            pass
    elif kind == "garbage":
        noise = os.urandom(MB)
        connection.send(message(len(noise)) + noise)
        connection.headers((b"grpc-status", b"0"), end=True)
    elif kind == "drip":
        connection.send(message(100 * MB))
        while connection.send(b"\0"):
            time.sleep(0.05)


def serve(kind, sock):
    try:
        if kind == "mute":
            sock.recv(1 << 20)
            time.sleep(600)
        elif kind == "noise":
            while True:
                sock.sendall(os.urandom(FRAME))
        else:
            answer(kind, Connection(sock))
            time.sleep(5)
    except OSError:
        pass


listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=(sys.argv[1], listener.accept()[0]), daemon=True).start()
