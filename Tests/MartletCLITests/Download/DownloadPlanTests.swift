import MartletContent
import HTTPTypes
import Martlet
import SystemPackage
import Testing

@testable import MartletCLI

@Suite("Download plans of a command line")
struct DownloadPlanTests {
    private func plans(_ words: [String], list: String = "") async throws -> [DownloadPlan] {
        var reader = CommandLineParser(
            DownloadCommand.options)
        try reader.read(words)
        let group = reader.groups[0]
        return try DownloadPlan.plans(
            for: group, lists: try DownloadList.entries(of: Array(list.utf8), named: "list"),
            caller: try await CredentialPlan.load(group))
    }

    @Test("A single URL is saved in the directory under the name from the server or the URL")
    func directory() async throws {
        let plan = try await plans(["h/a/b%20c.zip?q"])[0]
        #expect(plan.url.absoluteString == "http://h/a/b%20c.zip?q")
        #expect(plan.target == .directory("."))
        #expect(plan.name == "b c.zip")
        #expect(try await plans(["--dir", "d", "http://h/"])[0].target == .directory("d"))
        #expect(try await plans(["http://h/"])[0].name == "download")
    }

    @Test("-o and out= name the file, relative to --dir unless the path is absolute")
    func names() async throws {
        #expect(try await plans(["-o", "x/f", "http://h/"])[0].target == .file("x/f"))
        #expect(try await plans(["--dir", "d", "-o", "x/f", "http://h/"])[0].target == .file("d/x/f"))
        #expect(try await plans(["--dir", "d", "-o", "/x/f", "http://h/"])[0].target == .file("/x/f"))
        let listed = try await plans(["--dir", "d"], list: "http://h/1\n out=f\nhttp://h/2\n")
        #expect(listed.map(\.target) == [.file("d/f"), .directory("d")])
        #expect(listed.map(\.number) == [1, 2])
        #expect(listed.map(\.name) == ["f", "2"])
    }

    @Test("URLs of the command line come before URLs of list files")
    func order() async throws {
        let plans = try await plans(["http://h/3", "http://h/1"], list: "http://h/2\n")
        #expect(plans.map(\.url.path) == ["/3", "/1", "/2"])
        #expect(plans.map(\.number) == [1, 2, 3])
    }

    @Test("Command line options become download options")
    func options() async throws {
        let plan = try await plans([
            "--segments", "7", "--rename", "--resume-unverified", "-R", "--max-filesize", "1K", "--retry",
            "9",
            "--retry-delay", "60", "--stall-timeout", "0.01", "--connect-timeout", "4", "-A", "agent", "-e",
            "http://from/", "-H", "X-A: 1", "-H", "Accept:", "-b", "a=b", "--max-redirs", "2", "http://h/f",
        ])[0]
        let options = plan.options
        #expect(options.segments == 7 && options.collision == .rename && options.resumption == .unverified)
        #expect(options.preservesModificationTime && options.byteLimit == ByteCount(1024))
        #expect(options.retry.maximumRetries == 9 && options.retry.initialDelay == .seconds(60))
        #expect(options.retry.maximumDelay == .seconds(60), "never shorter than the first")
        #expect(options.stallTimeout == .milliseconds(100), "the least there is")
        #expect(options.request.timeouts.connect == .seconds(4))
        #expect(options.headers[.userAgent] == "agent" && options.headers[.referer] == "http://from/")
        #expect(options.headers[.cookie] == "a=b")
        #expect(options.request.omittedFields == [.accept])
    }

    @Test("User info and -u become credentials and are removed from the URL")
    func credentials() async throws {
        let plan = try await plans(["http://me:s3cret@h/f"])[0]
        #expect(plan.url.absoluteString == "http://h/f")
        #expect(plan.options.request.authentication?.credentials != nil)
        #expect(plan.options.headers[.authorization] == nil)
        let other = try await plans(["-u", "me:s3cret", "http://h/f"])[0]
        #expect(other.options.request.authentication?.credentials != nil)
        #expect(!"\(other)".contains("s3cret"), "nothing that prints a plan shows a password")
    }

    @Test("Headers of list lines are added to those of -H, and a bad one is rejected with its line")
    func fields() async throws {
        let plan = try await plans(["-H", "A: 1"], list: "http://h/\n header=B: 2\n")[0]
        #expect(plan.options.headers.map(\.value) == ["1", "2"])
        for (line, words) in [
            ("no colon", "has no colon"), ("A b: c", "is not a field name"), ("Range: bytes=0-1", "Range"),
            ("if-range: x", "If-Range"), ("Accept-Encoding:", "Accept-Encoding"),
        ] {
            let error = try await #require(throws: UsageError.self) {
                try await plans([], list: "http://h/\n header=X: y\n header=\(line)\n")
            }
            #expect(error.description.hasPrefix("list, line 3: "), "\(error)")
            #expect(error.description.lowercased().contains(words.lowercased()), "\(error)")
        }
        let error = try await #require(throws: UsageError.self) {
            try await plans(["-H", "Range: bytes=0-1", "http://h/"])
        }
        #expect(error.description.hasPrefix("option -H: "))
    }

    @Test(
        "Options that contradict each other are rejected",
        arguments: [
            [], ["-o", "f", "http://h/1", "http://h/2"], ["-o", "f", "-o", "g", "http://h/1"],
            ["--checksum", "md5=00000000000000000000000000000000", "http://h/1", "http://h/2"], ["-o", "f"],
            ["--mirror", "http://m/f", "http://h/1", "http://h/2"], ["--mirror", "http://m/f"],
            ["-o", "..", "http://h/"], ["-o", "a/", "http://h/"], ["-o", "/", "http://h/"],
        ])
    func misfit(_ words: [String]) async throws {
        let error = try await #require(throws: UsageError.self) { try await plans(words) }
        #expect(error.status == .usage)
    }

    @Test("--mirror and mirror= add URLs of a file")
    func mirrors() async throws {
        let plan = try await plans(["--mirror", "m1/f", "--mirror", "https://m2/f", "http://h/f"])[0]
        #expect(plan.options.mirrors.map(\.absoluteString) == ["http://m1/f", "https://m2/f"])
        let listed = try await plans([], list: "http://h/1\n mirror=http://m/1\n mirror=m/2\nhttp://h/2\n")
        #expect(
            listed.map { $0.options.mirrors.map(\.absoluteString) } == [["http://m/1", "http://m/2"], []])
        for words in [["--mirror", "ftp://m/f", "http://h/f"], ["--mirror", "", "http://h/f"]] {
            await #expect(throws: UsageError.self) { try await plans(words) }
        }
    }

    @Test("A state directory needs no URL")
    func state() async throws {
        #expect(try await plans(["--state", "s"]).isEmpty)
    }
}
