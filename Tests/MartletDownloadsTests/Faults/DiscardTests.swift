import Glibc
import Martlet
import MartletStorage
import MartletTestSupport
import MartletTesting
import MartletURL
import SystemPackage
import Testing

@testable import MartletDownloads

@Suite("Removal of the received bytes of a download")
struct DiscardTests {
    private func job(_ directory: PartDirectory, _ files: FaultyFileSystem) throws -> DownloadJob {
        DownloadJob(
            DownloadJob.Plan(
                url: try HTTPURL("http://files.example/a.bin"), target: .file(FilePath(directory.names.target)),
                options: DownloadOptions()),
            session: HTTPSession(configuration: .ephemeral), status: DownloadStatus(), files: files)
    }

    @Test(
        "A file that cannot be opened or removed is an error that names it, and not another download",
        arguments: [
            (FaultyFileSystem.Call.status, "part", EACCES), (.create, "part", EMFILE), (.lock, "part", ENOLCK),
            (.remove, "part", EPERM), (.remove, "record", EROFS),
        ])
    func faults(_ call: FaultyFileSystem.Call, _ file: String, _ code: Int32) async throws {
        let directory = try PartDirectory()
        for name in ["part", "record"] { try directory.write([1], to: "a.bin.martlet-\(name)") }
        let files = FaultyFileSystem()
        let job = try job(directory, files)
        files.fail(FaultyFileSystem.Fault(call, path: ".martlet-\(file)", code: code))
        let error = await #expect(throws: HTTPError.self) { try await job.discard() }
        #expect(error?.code == .fileFailed && error?.message.contains(".martlet-\(file)") == true)
        files.mend()
        try await job.discard()
        #expect(try directory.list().isEmpty)
    }

    @Test("A record without its bytes is removed too, and its failure is an error")
    func record() async throws {
        let directory = try PartDirectory()
        try directory.write([1], to: "a.bin.martlet-record")
        let files = FaultyFileSystem()
        let job = try job(directory, files)
        files.fail(FaultyFileSystem.Fault(.remove, path: ".martlet-record", times: 1, code: EPERM))
        await #expect(throws: HTTPError.self) { try await job.discard() }
        try await job.discard()
        #expect(try directory.list().isEmpty)
    }

    @Test("Bytes that another download writes stay, and the error says so")
    func inUse() async throws {
        let directory = try PartDirectory()
        let part = try #require(try directory.open())
        let job = try job(directory, FaultyFileSystem())
        let error = await #expect(throws: HTTPError.self) { try await job.discard() }
        #expect(error?.code == .alreadyInProgress)
        part.close()
        try await job.discard()
        #expect(try directory.list().isEmpty)
    }
}
