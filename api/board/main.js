import { Board } from "./board.js";

new Board(document).start();
