import { render } from "preact";
import "./style/tokens.css";
import "./style/page.css";
import { App } from "./app";
import { HttpClient } from "./data/client";
import { setClient } from "./data/store";

// The token leaves the address bar at once, so that it is not shared with a copied link. It is
// kept for this origin, port included, so that a view opened in another tab has it, too.
const here = new URL(location.href);
const token = here.searchParams.get("token") ?? localStorage.getItem("token");
if (here.searchParams.has("token")) {
  if (token) localStorage.setItem("token", token);
  here.searchParams.delete("token");
  history.replaceState(null, "", here);
}
setClient(new HttpClient(token));
render(<App />, document.getElementById("page")!);
