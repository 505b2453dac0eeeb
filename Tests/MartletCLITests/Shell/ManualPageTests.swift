import Foundation
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

    @Test("The manual page lists every exit code of the sources, and no other one")
    func exitCodes() throws {
        let directory = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../../Sources/MartletCLI")
        let files = try #require(FileManager.default.enumerator(at: directory, includingPropertiesForKeys: nil))
        var codes: Set<Int32> = [128 + SIGINT, 128 + SIGTERM]
        for case let file as URL in files where file.pathExtension == "swift" {
            for match in try String(contentsOf: file, encoding: .utf8).matches(of: /ExitStatus\(code: ([0-9]+)\)/) {
                codes.insert(try #require(Int32(match.output.1)))
            }
        }
        #expect(codes.count > 30)
        let listed = ManualPage.exitCodes.flatMap { $0.0.split(separator: ", ") }.compactMap { Int32($0) }
        #expect(listed.sorted() == codes.sorted())
    }
}
