import { render } from "preact";
import "../shared/theme.css";
import { App } from "./app.tsx";
import "./style/frame.css";
import "./style/parts.css";

render(<App />, document.getElementById("app")!);
