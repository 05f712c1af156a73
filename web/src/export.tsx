// The entry of an exported file: the same page, with its data inside.

import { render } from "preact";
import "./style/tokens.css";
import "./style/page.css";
import { App } from "./app";
import { EmbeddedClient, unpacked } from "./data/embedded";
import { setClient } from "./data/store";

const data = document.getElementById("data")!;
setClient(new EmbeddedClient(await unpacked(data.textContent ?? "")));
data.remove();
render(<App />, document.getElementById("page")!);
