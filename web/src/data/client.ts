// Where the page's data comes from: a server, or what an exported file carries inside.

import type { TileSource } from "../timeline/tiles";

/** What went wrong, in the server's own words. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly hint: string | null = null,
  ) {
    super(message);
  }
}

export interface Client {
  /** A file the page was exported to answers less: no SQL, no other runs. */
  readonly live: boolean;
  /** `path` is relative to `/api/`. */
  json<T>(path: string, signal?: AbortSignal): Promise<T>;
  binary(path: string, signal?: AbortSignal): Promise<ArrayBuffer>;
  post<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T>;
  /** The timeline of an exported file, which carries its events. */
  tiles?(run: number): TileSource;
}

export class HttpClient implements Client {
  readonly live = true;

  /** The token is part of the address the user was given; it never leaves this origin. */
  constructor(private readonly token: string | null) {}

  async json<T>(path: string, signal?: AbortSignal): Promise<T> {
    return (await this.ask(path, this.init(signal))).json() as Promise<T>;
  }

  async binary(path: string, signal?: AbortSignal): Promise<ArrayBuffer> {
    return (await this.ask(path, this.init(signal))).arrayBuffer();
  }

  async post<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
    const init = this.init(signal);
    const response = await this.ask(path, {
      ...init,
      method: "POST",
      headers: { ...init.headers, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return response.json() as Promise<T>;
  }

  private init(signal?: AbortSignal): RequestInit & { headers: Record<string, string> } {
    const headers: Record<string, string> = {};
    if (this.token) headers["authorization"] = `Bearer ${this.token}`;
    return signal ? { headers, signal } : { headers };
  }

  private async ask(path: string, init: RequestInit): Promise<Response> {
    let response: Response;
    try {
      response = await fetch(`api/${path}`, init);
    } catch (error) {
      if (init.signal?.aborted) throw error;
      throw new ApiError(0, "the server does not answer", "is `strobe serve` still running?");
    }
    if (response.ok) return response;
    const said = await response.json().catch(() => null);
    throw new ApiError(response.status, said?.error ?? response.statusText, said?.hint ?? null);
  }
}
