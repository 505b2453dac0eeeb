import Testing

@testable import MartletCLI

@Suite("Terminal lines that are redrawn in place")
struct TerminalBlockTests {
    private let hide = "\u{1B}[?25l"
    private let show = "\u{1B}[?25h"

    @Test("The first frame hides the cursor and leaves it on the last line")
    func first() {
        var block = TerminalBlock()
        #expect(block.frame(["a", "b"]) == hide + "\u{1B}[?7la\u{1B}[K\r\nb\u{1B}[K\u{1B}[?7h")
        #expect(block.lineCount == 2)
    }

    @Test("A later frame moves up to the first line and overwrites it")
    func next() {
        var block = TerminalBlock()
        _ = block.frame(["a", "b", "c"])
        #expect(block.frame(["d", "e", "f"]).hasPrefix("\r\u{1B}[2A\u{1B}[?7ld\u{1B}[K\r\n"))
        var single = TerminalBlock()
        _ = single.frame(["a"])
        #expect(single.frame(["b"]) == "\r\u{1B}[?7lb\u{1B}[K\u{1B}[?7h")
    }

    @Test("A frame with fewer lines erases the surplus lines of the frame before it")
    func size() {
        var block = TerminalBlock()
        _ = block.frame(["a"])
        #expect(!block.frame(["a", "b"]).contains("\u{1B}[J"))
        #expect(block.frame(["c"]).contains("c\u{1B}[K\u{1B}[J"))
        #expect(block.lineCount == 1)
    }

    @Test("Notes replace the lines, which are redrawn below them")
    func notes() {
        var block = TerminalBlock()
        _ = block.frame(["a", "b"])
        let frame = block.frame(["c", "d"], notes: ["note"])
        #expect(frame == "\r\u{1B}[1A\u{1B}[Jnote\r\n\u{1B}[?7lc\u{1B}[K\r\nd\u{1B}[K\u{1B}[?7h")
    }

    @Test("The end erases the lines and shows the cursor; before the first frame it erases nothing")
    func end() {
        var block = TerminalBlock()
        #expect(block.end(notes: ["said"]) == "said\r\n")
        _ = block.frame(["a", "b"])
        #expect(block.end(notes: ["done"]) == "\r\u{1B}[1A\u{1B}[Jdone\r\n" + show)
        #expect(block.end() == "")
        _ = block.frame(["a"])
        #expect(block.frame([], notes: ["done"]).hasSuffix(show), "no lines are the end of them")
    }
}
