import Testing

@testable import MartletCLI

@Suite("Manual page")
struct ManualPageTests {
    @Test("The manual page has every listed option, and no text line is read as a roff command")
    func options() {
        let lines = ManualPage.text.split(separator: "\n").map(String.init)
        for command in MartletCommand.wordsCommands {
            for option in command.options.listed {
                let name = "\\fB\\-\\-\(option.name.replacing("-", with: "\\-"))\\fR"
                #expect(lines.contains { $0.contains(name) }, "\(option.name)")
            }
        }
        let commands = Set(lines.filter { $0.hasPrefix(".") }.map { $0.prefix { $0 != " " } })
        #expect(commands.isSubset(of: [".TH", ".SH", ".TP", ".B", ".PP", ".br", ".nf", ".fi"]))
        #expect(ManualPage.escaped(".netrc a\\b -x") == "\\&.netrc a\\eb \\-x")
    }
}
