import "./ui/theme.css";
import "./ui/base.css";
import { mount } from "svelte";
import App from "./frame/App.svelte";
import { applyTheme } from "./frame/theme.svelte";

applyTheme();
const target = document.getElementById("page");
if (target) mount(App, { target });
