import Testing

@testable import MartletCLI

@Suite("Mistyped names of commands")
struct CommandNameTests {
    private static let names = ["get", "download", "batch", "serve", "demo", "cache", "queue", "network"]

    @Test(
        "A word close to a command's name is taken for it",
        arguments: [
            ("downlaod", "download"), ("donwload", "download"), ("downloads", "download"), ("bathc", "batch"),
            ("gte", "get"), ("Queue", "queue"), ("quue", "queue"), ("netwrk", "network"), ("dmeo", "demo"),
        ])
    func suggested(_ word: String, _ name: String) {
        #expect(CommandName.suggestion(for: word, among: Self.names) == name)
    }

    @Test(
        "Hosts, URLs and options are not",
        arguments: [
            "localhost", "example", "cache1", "demo.example", "get/x", "http://get/", "-s", "--dowload", "",
            "-",
            "mirror", "nas", "\u{e9}", "intranet",
        ])
    func hosts(_ word: String) {
        #expect(CommandName.suggestion(for: word, among: Self.names) == nil)
    }
}
