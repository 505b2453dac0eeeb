import FoundationEssentials
import Martlet
import MartletTesting
import SystemPackage
import Testing

@testable import MartletContent
@testable import MartletOffline

@Suite("Compressed bodies in the offline queue")
struct QueuedRequestTests {
    @Test("A stored request is compressed when it is sent, also by the next process, and after a 415 it is not")
    func stored() async throws {
        let path = FileManager.default.temporaryDirectory.path + "/martlet-outbox-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: path) }
        let (small, large) = (lines(4000), lines(300_000))
        try await Inbox.run({ $0.path == "/415" && $0.coding != nil ? .status(415) : nil }) {
            origin, inbox async throws in
            let bodies: [(path: String, body: HTTPBody)] = [
                ("/small", .bytes(small)), ("/large", .bytes(large)), ("/415", .bytes(large)),
                ("/once", .once(Pieces(large, sizes: [9000]))),
            ]
            let first = try await OfflineQueue(
                session: .own(), directory: path, options: OfflineQueueOptions(sendsRequests: false))
            for (path, body) in bodies {
                try await first.submit(origin.url(path), body: body.compressed(.gzip, level: 9), lane: "one")
            }
            try await first.submit(origin.url("/plain"), body: .bytes(small), lane: "one")
            await first.close()
            let second = try await OfflineQueue(session: .own(), directory: path)
            try await second.drained
            await second.close()
            #expect(inbox.entries.map(\.path) == ["/small", "/large", "/415", "/415", "/once", "/plain"])
            #expect(inbox.codings == ["gzip", "gzip", "gzip", nil, "gzip", nil])
            let contents = inbox.entries.map(\.content)
            #expect(contents == [small, large, large, large, large, small])
        }
    }

    @Test("The record of a request holds the coding and its level, and an unknown coding is ignored")
    func record() throws {
        var request = QueuedRequest(
            id: OfflineID(7), lane: "notes", method: "POST", url: try HTTPURL("https://example.com/"), submitted: 1,
            expires: 2)
        for compression in [nil] + BodyCompression.all {
            for level in [nil, 1, 9] {
                request.compression = compression
                request.compression?.level = level
                #expect(try QueuedRequestCodec.decode(QueuedRequestCodec.encode(request)) == request)
            }
        }
        #expect(BodyCompression(name: "lzma", level: 3) == nil)
    }
}
