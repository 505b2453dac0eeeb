import Foundation
import HTTPTypes
import Martlet
import MartletCore
import MartletDownloads
import Testing

@testable import MartletCLI

@Suite("Metalink documents on the command line", .timeLimit(.minutes(10)))
struct MetalinkListTests {
    private static let digits = String(repeating: "ab", count: 32)

    private static func document(_ content: String) -> String {
        #"<metalink xmlns="urn:ietf:params:xml:ns:metalink">\#(content)</metalink>"#
    }

    private static let files = document(
        """
        <file name="../one.iso"><size>7</size><hash type="sha-256">\(digits)</hash>
        <url>http://b.example/one</url><url priority="1">http://a.example/one</url></file>
        <file name="two.iso"><url>http://a.example/two</url></file>
        """)

    /// Writes a document to a temporary file, which is removed after the closure.
    private func with(_ text: String, _ run: (String) async throws -> Void) async throws {
        let path = FileManager.default.temporaryDirectory.path + "/martlet-\(UUID()).meta4"
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
        defer { try? FileManager.default.removeItem(atPath: path) }
        try await run(path)
    }

    private func group(_ words: [String]) throws -> TransferOptions {
        var parser = CommandLineParser(DownloadCommand.options)
        try parser.read(words)
        return parser.groups[0]
    }

    /// Runs a command line whose downloads finish immediately: a document as this file and type, others as their names.
    private func run(
        _ words: [String], document path: String, type: String? = nil
    ) async throws -> (status: MartletCLI.ExitStatus, plans: [DownloadPlan]) {
        let group = try group(["-s"] + words)
        let plans = try DownloadPlan.plans(for: group, lists: [], caller: try await CredentialPlan.load(group))
        let fakes = FakeDownloads { fake, _ in
            if fake.plan.followsMetalink { fake.finish(at: path, contentType: type) } else { fake.finish() }
        }
        let form = ProgressStyle(group.global, isTerminal: false, usesUnicode: true) { _ in nil }
        let status = await DownloadRunner(
            plans: plans, group: group, starter: fakes, screen: DownloadScreen(form: form, fileCount: plans.count),
            limits: (group.download.fileLimit, group.download.fileLimitPerHost)
        ).run(interruption: noSignal)
        return (status, fakes.fakes.map(\.plan).sorted { $0.number < $1.number })
    }

    @Test("A word that ends in .meta4 is a document, whose files are downloaded by their names")
    func file() async throws {
        try await with(Self.files) { path in
            let group = try group(["--dir", "d", "http://h/first", path])
            let plans = try DownloadPlan.plans(for: group, lists: [], caller: try await CredentialPlan.load(group))
            #expect(
                plans.map(\.url.absoluteString) == ["http://h/first", "http://a.example/one", "http://a.example/two"])
            #expect(plans.map(\.target) == [.directory("d"), .file("d/one.iso"), .file("d/two.iso")])
            let options = plans[1].options
            #expect(options.mirrors.map(\.absoluteString) == ["http://b.example/one"])
            #expect(options.checksum == .sha256(Self.digits) && options.expectedByteCount == 7)
            #expect(try self.group(["--metalink", path]).download.metalinks == [path])
            await #expect(throws: UsageError.self, "a name for several files") {
                let group = try self.group(["-o", "f", path])
                _ = try DownloadPlan.plans(for: group, lists: [], caller: try await CredentialPlan.load(group))
            }
        }
        #expect(!MetalinkList.isFile("http://h/f.meta4"))
    }

    @Test(
        "A document without usable files is an error that names it",
        arguments: [
            document(""), document("<file name=\"f\"><url>ftp://h/f</url></file>"), "", "<html/>",
            document("<file name=\"f\"><hash type=\"sha-256\">0</hash><url>http://h/f</url></file>"),
        ])
    func unusable(_ text: String) throws {
        let error = try #require(throws: UsageError.self) {
            try MetalinkList.entries(of: Array(text.utf8), named: "list.meta4")
        }
        #expect(error.description.hasPrefix("list.meta4: "), "\(error)")
    }

    @Test(
        "The files of a downloaded document are downloaded without the credentials of the command line",
        arguments: [
            ("http://h/f.meta4", nil), ("http://h/f.meta4?x", "text/plain"),
            ("http://h/f", "Application/Metalink4+XML ; charset=utf-8"),
        ])
    func followed(_ url: String, _ type: String?) async throws {
        try await with(Self.files) { path in
            let words = ["-u", "me:s3cret", "-b", "a=b", "-H", "X-Trace: 1", "-H", "Authorization: Bearer x", url]
            let (status, plans) = try await run(words, document: path, type: type)
            #expect(status == .success)
            #expect(plans.map(\.number) == [1, 2, 3])
            #expect(plans.dropFirst().map(\.name) == ["one.iso", "two.iso"])
            #expect(
                plans[0].options.headers[.authorization] == "Bearer x" && plans[0].options.headers[.cookie] == "a=b")
            for plan in plans.dropFirst() {
                #expect(plan.options.request.authentication?.credentials == nil)
                #expect(plan.options.headers[.cookie] == nil && plan.options.headers[.authorization] == nil)
                #expect(plan.options.headers.contains { $0.value == "1" })
                #expect(!plan.followsMetalink, "a document of a document is only a file")
            }
        }
    }

    @Test("Other files, and all files with --no-follow-metalink, are only downloaded", arguments: [false, true])
    func notFollowed(isDocument: Bool) async throws {
        try await with(Self.files) { path in
            let words = isDocument ? ["--no-follow-metalink", "http://h/f.meta4"] : ["http://h/f.xml"]
            let (status, plans) = try await run(words, document: path, type: isDocument ? nil : "text/xml")
            #expect(status == .success && plans.count == 1)
        }
    }

    @Test("A downloaded document that is invalid or missing is a failure", arguments: [false, true])
    func broken(isMissing: Bool) async throws {
        try await with("<html/>") { path in
            let (status, plans) = try await run(["http://h/f.meta4"], document: isMissing ? path + "x" : path)
            #expect(status != .success && plans.count == 1)
        }
    }
}
