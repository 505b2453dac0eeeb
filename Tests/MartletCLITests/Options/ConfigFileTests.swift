import Foundation
import Testing

@testable import MartletCLI

@Suite("Option files of -K")
struct ConfigFileTests {
    /// Parses a file of these lines.
    private func options(_ text: String) throws -> TransferOptions {
        let scene = try GetScene()
        try scene.write(text, to: "config")
        return try GetScene.groups(["-K", scene.file("config")])[0]
    }

    @Test("The value of an option is on its line and ends at a blank unless it is quoted")
    func values() throws {
        let group = try options(
            """
            # a comment
            url = http://h/x  # note
            --url http://h/y
            url: "http://h/z w"# note
            user-agent = ""
            -d a=1
            header = X-A:1 rest
            silent # note
            """)
        #expect(group.urls == ["http://h/x", "http://h/y", "http://h/z w"])
        #expect(group.userAgent == "")
        #expect(group.data == [.data("a=1")])
        #expect(group.headerLines == ["X-A:1"])
        #expect(group.global.warnings.count == 1)
    }

    @Test(
        "An option without its value, or a flag with a value, is an error that names its line",
        arguments: [
            ("output =\nurl = http://h/", "line 1: option --output: needs a value: FILE"),
            ("output\nurl = http://h/", "line 1: option --output: needs a value: FILE"),
            ("output = # none\n--url http://h/", "line 1: option --output: needs a value: FILE"),
            ("url = http://h/\ninsecure = true", "line 2: option --insecure: takes no value"),
            ("-s http://h/", "line 1: option -s: takes no value"), ("--\n", "line 1: no option"),
            ("- x\n", "line 1: no option"), ("= x\n", "line 1: no option"),
            ("url = \"http://h/", "line 1: a quote is not closed"),
            ("http://h/", "line 1: option --http: is unknown"),
        ])
    func mistakes(_ text: String, _ message: String) throws {
        let error = #expect(throws: UsageError.self) { _ = try options(text) }
        #expect(error?.description.hasSuffix(message) == true, "\(error?.description ?? "")")
        #expect(error?.status == .usage)
    }
}
