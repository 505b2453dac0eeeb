import MartletConditions
import MartletContent
import Testing

@testable import MartletCLI

@Suite("Form of the progress output")
struct ProgressStyleTests {
    private func form(
        _ progress: GlobalOptions.Progress, terminal: Bool = true, silent: Bool = false,
        _ variables: [String: String] = ["TERM": "xterm"]
    ) -> ProgressStyle {
        var global = GlobalOptions()
        global.progress = progress
        global.isSilent = silent
        return ProgressStyle(global, isTerminal: terminal, usesUnicode: true) { variables[$0] }
    }

    @Test("Progress is bars on a terminal and lines elsewhere, whatever was requested")
    func terminal() {
        #expect(form(.auto).progress == .bar)
        #expect(form(.auto, terminal: false).progress == .plain)
        #expect(form(.bar, terminal: false).progress == .plain)
        #expect(form(.plain).progress == .plain)
        #expect(form(.json).progress == .json)
        #expect(form(.none).progress == .none)
    }

    @Test("A terminal that cannot move its cursor has lines")
    func dumb() {
        #expect(form(.auto, ["TERM": "dumb"]).progress == .plain)
        #expect(form(.bar, [:]).progress == .plain)
    }

    @Test("Colors are for terminals without NO_COLOR")
    func color() {
        #expect(form(.auto).usesColor)
        #expect(!form(.auto, ["TERM": "xterm", "NO_COLOR": "1"]).usesColor)
        #expect(form(.auto, ["TERM": "xterm", "NO_COLOR": ""]).usesColor)
        #expect(!form(.auto, terminal: false).usesColor)
    }

    @Test("-s shows nothing, and -S still shows failures")
    func silence() {
        #expect(form(.bar, silent: true).progress == .none)
        #expect(!form(.json, silent: true).printsErrors)
        var global = GlobalOptions()
        (global.isSilent, global.showsErrors) = (true, true)
        let form = ProgressStyle(global, isTerminal: true, usesUnicode: true) { _ in nil }
        #expect(form.progress == .none && form.printsErrors)
    }
}
