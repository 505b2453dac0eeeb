import MartletCredentials
import Foundation
import HTTPTypes
import Martlet
import MartletDownloads
import MartletTesting
import SystemPackage
import Testing

@testable import MartletCLI

@Suite("Downloads with a state directory, from the command line", .timeLimit(.minutes(10)))
struct ManagedDownloadsTests {
    /// A temporary state directory, removed after its test.
    private final class Directory {
        let path = FileManager.default.temporaryDirectory.appending(path: "martlet-state-\(UUID())").path

        init() throws {
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        }

        deinit { try? FileManager.default.removeItem(atPath: path) }

        var queue: String { "\(path)/queue" }

        func contents() throws -> String {
            try FileManager.default.contentsOfDirectory(atPath: queue).sorted().map { name in
                String(decoding: try Data(contentsOf: URL(filePath: "\(queue)/\(name)")), as: UTF8.self)
            }.joined()
        }
    }

    private func group(_ words: [String]) throws -> TransferOptions {
        var reader = CommandLineParser(
            DownloadCommand.options)
        try reader.read(["-s"] + words)
        return reader.groups[0]
    }

    private func open(_ directory: Directory, _ words: [String]) async throws -> (TransferOptions, ManagedDownloads) {
        let group = try group(["--state", directory.queue, "--dir", directory.path] + words)
        let caller = try await CredentialPlan.load(group)
        let plans = try DownloadPlan.plans(for: group, lists: [], caller: caller)
        let session = HTTPSession(configuration: .ephemeral)
        return (group, try #require(try await ManagedDownloads.open(group, plans, caller, session)))
    }

    /// Runs a command line as the program does.
    private func run(
        _ directory: Directory, _ words: [String],
        interruption: @escaping @Sendable () async -> Int32? = noSignal
    ) async throws -> MartletCLI.ExitStatus {
        let (group, managed) = try await open(directory, words)
        let form = ProgressStyle(group.global, isTerminal: false, usesUnicode: true) { _ in nil }
        let runner = DownloadRunner(
            plans: managed.plans, group: group, starter: managed,
            screen: DownloadScreen(form: form, fileCount: managed.plans.count), limits: nil)
        let status = await runner.run(interruption: interruption)
        await managed.close()
        return status
    }

    /// Serves a different text on each path, to clients with the required credentials.
    private func withOrigin(
        _ body: (TestOrigin) async throws -> Void
    ) async throws {
        try await TestOrigin.withOrigin(.plain) { request in
            if request.path.hasPrefix("/secret"), request.headers["Authorization"] != "Bearer t0ken" {
                return OriginResponse.text("who?\n", status: 401)
            }
            if request.path.hasPrefix("/missing") { return OriginResponse.text("no\n", status: 404) }
            return OriginResponse.text("this is \(request.path)\n")
        } run: { origin in
            try await body(origin)
        }
    }

    private func text(_ directory: Directory, _ name: String) -> String? {
        try? String(contentsOfFile: "\(directory.path)/\(name)", encoding: .utf8)
    }

    @Test("Without --state there is no queue")
    func none() async throws {
        let group = try group(["http://h/f"])
        let caller = try await CredentialPlan.load(group)
        let session = HTTPSession(configuration: .ephemeral)
        #expect(try await ManagedDownloads.open(group, [], caller, session) == nil)
    }

    @Test("Named downloads are finished, reported and removed, so that the next run finds nothing")
    func done() async throws {
        try await withOrigin { origin in
            let directory = try Directory()
            #expect(try await run(directory, [origin.url("/a"), origin.url("/b")]) == .success)
            #expect(text(directory, "a") == "this is /a\n" && text(directory, "b") == "this is /b\n")
            #expect(try FileManager.default.contentsOfDirectory(atPath: directory.queue) == ["lock"])
            let (_, again) = try await open(directory, [])
            #expect(again.plans.isEmpty)
            await again.close()
            #expect(try await run(directory, []) == .success)
        }
    }

    @Test("The next command line retries a failed download, whatever URLs it names")
    func failed() async throws {
        try await withOrigin { origin in
            let directory = try Directory()
            let status = try await run(directory, [origin.url("/missing"), origin.url("/b")])
            #expect(status == .rejectedByStatus)
            #expect(text(directory, "b") != nil)
            #expect(try await run(directory, [origin.url("/c")]) == .rejectedByStatus)
            #expect(text(directory, "c") == "this is /c\n")
            #expect(origin.requests.filter { $0.target == "/missing" }.count == 2)
            #expect(try await run(directory, []) == .rejectedByStatus)
        }
    }

    @Test("Stored downloads come first, keep their numbers and are not added twice")
    func plans() async throws {
        let directory = try Directory()
        let urls = ["http://127.0.0.1:1/a", "http://127.0.0.1:1/b"]
        let (_, first) = try await open(directory, ["--retry", "1000000"] + urls)
        await first.prepare()
        await first.close()
        let (_, second) = try await open(directory, [urls[1], "http://127.0.0.1:1/c"])
        #expect(second.plans.map(\.url.path) == ["/a", "/b", "/c"])
        #expect(second.plans.map(\.number) == [1, 2, 3])
        #expect(second.plans.map(\.name) == ["a", "b", "c"])
        #expect(second.plans[0].target == .directory(FilePath(directory.path)))
        await second.prepare()
        #expect(second.manager.all.count == 3)
        await second.close()
        let (_, third) = try await open(directory, ["-o", "other", urls[0]])
        // A different file name makes a different download.
        #expect(third.plans.map(\.url.path) == ["/a", "/b", "/c", "/a"])
        await third.close()
    }

    @Test("A second program with the same directory exits with 106 and says why")
    func shared() async throws {
        let directory = try Directory()
        let (_, first) = try await open(directory, [])
        let error = await #expect(throws: UsageError.self) { try await open(directory, []) }
        #expect(error?.status == .alreadyInProgress)
        #expect(error?.description.contains("another download manager uses this directory") == true)
        await first.close()
        let (_, second) = try await open(directory, [])
        await second.close()
    }

    @Test("A directory that other users can write to is rejected")
    func unsafeDirectory() async throws {
        let directory = try Directory()
        try FileManager.default.createDirectory(
            atPath: directory.queue, withIntermediateDirectories: false,
            attributes: [.posixPermissions: 0o777])
        try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: directory.queue)
        let error = await #expect(throws: UsageError.self) { try await open(directory, []) }
        #expect(error?.status == .writeFailed && error?.description.contains("chmod 700") == true)
    }

    @Test("A signal stops all downloads, pauses none, and stores even those that had not started")
    func interrupted() async throws {
        let directory = try Directory()
        let urls = (1...7).map { "http://127.0.0.1:1/\($0)" }
        // It arrives before anything else.
        let status = try await run(directory, ["--retry", "1000000"] + urls) { 2 }
        #expect(status.code == 130)
        let (_, next) = try await open(directory, [])
        #expect(next.plans.map(\.url.path) == (1...7).map { "/\($0)" })
        for id in next.manager.all.map(\.id) {
            if case .paused? = next.manager.download(id)?.state { Issue.record("\(id) is paused") }
        }
        await next.close()
    }

    @Test("Credentials are never stored; a command line without URLs gives its own to all downloads")
    func credentials() async throws {
        try await withOrigin { origin in
            let directory = try Directory()
            let url = origin.url("/secret")
            #expect(try await run(directory, ["--oauth2-bearer", "wr0ng", url]) == .rejectedByStatus)
            #expect(try !directory.contents().contains("wr0ng"))
            // Credentials of a command line that names another URL apply to that URL.
            let status = try await run(directory, ["--oauth2-bearer", "t0ken", origin.url("/secret2")])
            #expect(status == .rejectedByStatus)
            #expect(text(directory, "secret2") == "this is /secret2\n" && text(directory, "secret") == nil)
            #expect(try !directory.contents().contains("t0ken"))
            #expect(try await run(directory, ["--oauth2-bearer", "t0ken"]) == .success)
            #expect(text(directory, "secret") == "this is /secret\n")
            let sent = origin.requests.filter { $0.target == "/secret" }.map { $0.headers["Authorization"] }
            #expect(sent.filter { $0 == "Bearer t0ken" }.count == 1)
        }
    }

    @Test(
        "Credentials for a URL that is named again apply to its stored download",
        arguments: [false, true])
    func namedAgain(_ isField: Bool) async throws {
        try await withOrigin { origin in
            let directory = try Directory()
            #expect(try await run(directory, [origin.url("/secret")]) == .rejectedByStatus)
            let words = isField ? ["-H", "Authorization: Bearer t0ken"] : ["--oauth2-bearer", "t0ken"]
            #expect(try await run(directory, words + [origin.url("/secret")]) == .success)
            #expect(text(directory, "secret") == "this is /secret\n")
        }
    }
}
