import SystemPackage
import Testing

@testable import MartletCLI

@Suite("Location of a queue")
struct QueueDirectoryTests {
    private func path(_ named: String?, _ variables: [String: String]) throws(UsageError) -> String {
        try QueueDirectory.path(named) { variables[$0] }.string
    }

    @Test("The directory is the named one, else in XDG_STATE_HOME, else in the home directory")
    func directories() throws {
        let both = ["XDG_STATE_HOME": "/state", "HOME": "/home/me"]
        #expect(try path("dir/q", both) == "dir/q")
        #expect(try path(nil, both) == "/state/martlet/queue")
        #expect(try path(nil, ["HOME": "/home/me"]) == "/home/me/.local/state/martlet/queue")
    }

    @Test(
        "An XDG_STATE_HOME that is empty or not absolute is ignored",
        arguments: ["", "state", "./state"])
    func relative(_ directory: String) throws {
        #expect(
            try path(nil, ["XDG_STATE_HOME": directory, "HOME": "/home/me"])
                == "/home/me/.local/state/martlet/queue")
    }

    @Test("Without any directory the error says what to set")
    func none() {
        let cases: [(String?, [String: String])] = [
            (nil, [:]), (nil, ["HOME": ""]), ("", ["HOME": "/h"]), ("a\0b", ["HOME": "/h"]),
        ]
        for (named, variables) in cases {
            do throws(UsageError) {
                _ = try path(named, variables)
                Issue.record("there is a directory")
            } catch {
                #expect(error.status == .usage && error.description.contains("--queue"))
            }
        }
    }
}
