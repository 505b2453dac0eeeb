import Martlet
import MartletTesting
import MartletTestSupport
import Testing

/// Network faults that a response can show, from a table of rows.
@Suite("Faults of the network")
struct NetworkFaultTests {
    @Test("A file is complete or absent, whatever the responses are", arguments: DownloadRow.answers)
    func answers(_ row: DownloadRow) async throws {
        try await row.play()
    }

    @Test("A response with another part than the requested one is rejected", arguments: DownloadRow.lies)
    func lies(_ row: DownloadRow) async throws {
        try await row.play()
    }

    @Test("Versions are distinguished by the server's validators", arguments: DownloadRow.versions)
    func versions(_ row: DownloadRow) async throws {
        try await row.play()
    }

    @Test("A cut or a stall costs only the missing bytes", arguments: DownloadRow.cuts)
    func cuts(_ row: DownloadRow) async throws {
        try await row.play()
    }

    @Test("A checksum has the last word", arguments: DownloadRow.checksums)
    func checksums(_ row: DownloadRow) async throws {
        try await row.play()
    }

    @Test("A transient failure is retried even if the session maps its errors")
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
