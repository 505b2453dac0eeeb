import Martlet
import MartletTesting
import MartletTestSupport
import Testing

/// The rows of the network in the matrix of faults, as far as an answer can show them.
@Suite("Faults of the network")
struct NetworkFaultTests {
    @Test("A file is whole or absent, whatever the answers are", arguments: DownloadRow.answers)
    func answers(_ row: DownloadRow) async throws {
        try await row.play()
    }

    @Test("What is not the part that was asked for is refused", arguments: DownloadRow.lies)
    func lies(_ row: DownloadRow) async throws {
        try await row.play()
    }

    @Test("Versions are told apart by what the server says of them", arguments: DownloadRow.versions)
    func versions(_ row: DownloadRow) async throws {
        try await row.play()
    }

    @Test("A cut or a silence costs only what is missing", arguments: DownloadRow.cuts)
    func cuts(_ row: DownloadRow) async throws {
        try await row.play()
    }

    @Test("A checksum has the last word", arguments: DownloadRow.checksums)
    func checksums(_ row: DownloadRow) async throws {
        try await row.play()
    }

    @Test("A failure that passes is known as one where the session's errors are mapped")
    func mapped() async throws {
        struct ServiceError: Error {}
        try await RangeScene.with(Samples.cutOnce()) {
            $0.errors = ErrorMapper { _ in ServiceError() }
        } run: { scene in
            let run = try await scene.run()
            #expect(run.value != nil, "\(run.log)")
            #expect(run.retries.count == 1, "\(run.log)")
            try await scene.expectOrder(after: run, versions: [Samples.one])
        }
    }
}
