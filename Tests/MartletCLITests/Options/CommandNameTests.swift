import Testing

@testable import MartletCLI

@Suite("Mistyped names of commands")
struct CommandNameTests {
    private static let names = ["get", "download", "batch", "serve", "demo", "cache", "queue", "network", "ws"]

    @Test(
        "A word close to a command's name is recognized as a typo",
        arguments: [
            ("downlaod", "download"), ("donwload", "download"), ("downloads", "download"), ("bathc", "batch"),
            ("gte", "get"), ("Queue", "queue"), ("quue", "queue"), ("netwrk", "network"), ("dmeo", "demo"),
        ])
    func suggested(_ word: String, _ name: String) {
        #expect(CommandName.suggestion(for: word, among: Self.names) == name)
    }

    @Test(
        "Hosts, URLs and options are not typos",
        arguments: [
            "localhost", "example", "cache1", "demo.example", "get/x", "http://get/", "-s", "--dowload", "",
            "-",
            "mirror", "nas", "ns", "w", "\u{e9}", "intranet",
        ])
    func hosts(_ word: String) {
        #expect(CommandName.suggestion(for: word, among: Self.names) == nil)
    }

    @Test(
        "A misspelled command is an error that names the nearest one",
        arguments: [
            (["downlaod", "http://h/"], "unknown command “downlaod”; did you mean “download”?"),
            (["hlep"], "unknown command “hlep”; did you mean “help”?"),
            (["help", "serv"], "unknown command “serv”; did you mean “serve”?"),
            (["help", "nothing"], "unknown command “nothing”; “martlet help” lists the commands"),
            (["queue", "lst"], "unknown command “queue lst”; did you mean “queue list”?"),
            (["cache", "verfy", "--json"], "unknown command “cache verfy”; did you mean “cache verify”?"),
            (["post", "http://h/"], "unknown command “post”; did you mean “martlet -d DATA URL”?"),
            (["PUT", "http://h/"], "unknown command “PUT”; did you mean “martlet -T FILE URL”?"),
            (["head", "http://h/"], "unknown command “head”; did you mean “martlet -I URL”?"),
            (["version"], "unknown command “version”; did you mean “martlet --version”?"),
        ])
    func mistakes(_ words: [String], _ message: String) throws {
        let error = try #require(CommandName.usageError(in: words))
        #expect(error.description.hasPrefix(message), "\(error)")
        #expect(error.status == .usage)
    }

    @Test(
        "Commands, hosts and options are accepted",
        arguments: [
            ["queue", "list"], ["queue"], ["cache", "--help"], ["help", "serve"], ["intranet"], ["-s"], [],
        ])
    func noMistakes(_ words: [String]) { #expect(CommandName.usageError(in: words) == nil) }
}
