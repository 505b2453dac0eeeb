import Testing

@testable import MartletCLI

@Suite("Help texts")
struct HelpTextTests {
    @Test("The short help fits a terminal of 24 lines and 80 columns, and names every command")
    func short() throws {
        let text = try #require(HelpText.text(for: ["--help"]))
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
        #expect(lines.count <= 24)
        #expect(lines.allSatisfy { $0.count <= 80 })
        for command in MartletCommand.commands { #expect(text.contains("\n  \(command.name) ")) }
        #expect(text.contains("martlet help all"))
        #expect(HelpText.text(for: ["-h"]) == text && HelpText.text(for: ["help"]) == text)
        #expect(HelpText.text(for: ["help", "serve"]) == nil)
    }

    @Test("The full help has the options of every command")
    func all() throws {
        let text = try #require(HelpText.text(for: ["help", "all"]))
        for command in MartletCommand.wordsCommands {
            for option in command.options.listed { #expect(text.contains("--\(option.name)")) }
        }
        for usage in ["martlet serve", "martlet cache verify", "martlet queue retry", "martlet batch"] {
            #expect(text.contains("USAGE: \(usage)"), "\(usage)")
        }
        #expect(text.contains("/basic-auth/USER/PASSWORD"))
    }
}
