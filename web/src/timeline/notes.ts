// What a user wrote at some times of the timeline, as it stands in the address.

export interface Note {
  /** In ps. */
  time: number;
  text: string;
}

/** An address is shared in chats and tickets: it must not grow without end. */
const MOST_NOTES = 40;
const LONGEST = 200;

/** `123~slow here|456~`; what is no note is left out. */
export function notesFrom(text: string | undefined): Note[] {
  const notes: Note[] = [];
  for (const part of (text ?? "").split("|")) {
    const [time, ...rest] = part.split("~");
    if (!time || !/^-?\d+$/.test(time)) continue;
    notes.push({ time: Number(time), text: unescaped(rest.join("~")).slice(0, LONGEST) });
  }
  return notes.slice(0, MOST_NOTES);
}

export const notesText = (notes: readonly Note[]): string =>
  notes
    .slice(0, MOST_NOTES)
    .map((it) => `${it.time}~${escaped(it.text.slice(0, LONGEST))}`)
    .join("|");

// The address escapes what an address must; this is for what separates notes.
const escaped = (text: string): string => text.replaceAll("\\", "\\\\").replaceAll("|", "\\p");
const unescaped = (text: string): string =>
  text.replace(/\\(.)/g, (_, it: string) => (it === "p" ? "|" : it));
