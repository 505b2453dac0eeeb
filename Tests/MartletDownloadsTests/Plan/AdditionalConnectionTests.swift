import MartletContent
import MartletCaching
import MartletCore
import MartletTransport
import Testing

@testable import MartletDownloads

@Suite("Rejected additional connections")
struct AdditionalConnectionTests {
    /// The reaction of the server or the system to each connection after the second.
    struct Rejection: Sendable, CustomTestStringConvertible {
        let name: String
        let reply: @Sendable () throws -> SimulatedDownload.Reply

        var testDescription: String { name }

        /// A response with a body of another file.
        static func response(_ name: String, _ status: Int, _ fields: [(String, String)]) -> Rejection {
            Rejection(name: name) {
                SimulatedDownload.Reply(
                    responseHead: try DownloadResponseHead.sample(status, fields, byteCount: 1_000),
                    byteCount: 1_000,
                    version: 9)
            }
        }

        /// A failure before any response.
        static func failure(_ code: HTTPError.Code, _ phase: HTTPError.Phase) -> Rejection {
            Rejection(name: "\(code) while \(phase)") {
                SimulatedDownload.Reply(
                    responseHead: nil, end: .failed(HTTPError(code, phase: phase, message: "no")))
            }
        }
    }

    private static let tag = ("ETag", "\"one\"")
    private static let otherTag = ("ETag", "\"two\"")

    static let rejections: [Rejection] =
        [
            .response("200 with a page", 200, [("Content-Type", "text/html")]),
            .response("200 with a page that has a tag", 200, [otherTag]),
            .response("200 with the whole file", 200, [tag]),
            .response("200 with a coded page", 200, [("Content-Encoding", "gzip")]),
            .response("203 of another version", 203, [otherTag]),
            .response("206 of another version", 206, [otherTag, ("Content-Range", "bytes 0-999/1000")]),
            .response("206 without Content-Range", 206, [tag]),
            .response("206 with garbage", 206, [tag, ("Content-Range", "what?")]),
            .response("206 of another length", 206, [tag, ("Content-Range", "bytes 0-999/1000")]),
            .response("206 in several parts", 206, [("Content-Type", "multipart/byteranges")]),
            .response("416", 416, []),
            .response("416 with a length", 416, [("Content-Range", "bytes */1000")]),
            .response("416 of another version", 416, [otherTag, ("Content-Range", "bytes */1000")]),
        ]
        + [204, 302, 400, 401, 403, 404, 405, 406, 407, 409, 410, 412, 429, 451, 500, 501, 503, 509].map {
            .response("\($0)", $0, [])
        } + [
            .failure(.tooManyRedirects, .processingResponse), .failure(.redirectRejected, .processingResponse),
            .failure(.protocolViolation, .awaitingHead), .failure(.limitExceeded, .awaitingHead),
            .failure(.emptyResponse, .awaitingHead), .failure(.connectionLost, .awaitingHead),
            .failure(.connectFailed, .connecting), .failure(.resolutionFailed, .resolving),
            .failure(.systemFailed, .connecting), .failure(.tlsFailed, .tlsHandshake),
            .failure(.proxyFailed, .tunneling), .failure(.authenticationFailed, .processingResponse),
            .failure(.invalidURL, .preparing), .failure(.invalidRequest, .preparing),
            .failure(.timedOut, .awaitingHead),
        ]

    /// The transfers that the server serves, and the number of its rejections.
    private final class Server {
        var served: Set<UInt64> = []
        var rejectionCount = 0
    }

    @Test(
        "A server that allows two connections serves them to the end, however it rejects others",
        arguments: rejections)
    func beyondTwo(_ rejection: Rejection) throws {
        let file = SimulatedFile(byteCount: 100 << 20)
        let server = Server()
        var download = try SimulatedDownload { rangeRequest, _ in
            guard server.served.count < 2 else {
                server.rejectionCount += 1
                return try rejection.reply()
            }
            server.served.insert(rangeRequest.id)
            return try file.reply(rangeRequest)
        }
        download.speed = { id, download in
            // After its last byte the connection is free for the next request.
            let rest = download.machine.plan?.claims[id]?.rest ?? 0
            if rest <= 200_000 { server.served.remove(id) }
            return 5e6
        }
        while download.outcome == nil, download.seconds < 600 {
            download.run(seconds: 0.02)
            server.served.formIntersection(download.machine.transfers.keys)
        }
        #expect(download.isComplete, "\(String(describing: download.outcome))")
        #expect(download.restarts.isEmpty && download.waits.isEmpty)
        #expect(download.mixedCount == 0 && download.version == 1)
        #expect(download.disk == RangeSet([0..<file.byteCount]))
        #expect((1...20).contains(server.rejectionCount), "\(server.rejectionCount)")
    }

    // A rejection once arrived when the only accepted connection had just ended, and ended the download.
    @Test("A rejection that arrives when no other connection is left does not end the download", arguments: rejections)
    func lateRejection(_ rejection: Rejection) throws {
        let file = SimulatedFile(byteCount: 30 << 20)
        var accepted: UInt64 = 0
        var download = try SimulatedDownload { rangeRequest, _ in
            guard rangeRequest.isAdditional else {
                accepted += 1
                return try file.reply(rangeRequest)
            }
            var reply = try rejection.reply()
            reply.latency = .seconds(100)
            return reply
        }
        download.run()
        #expect(download.isComplete, "\(String(describing: download.outcome))")
        #expect(download.restarts.isEmpty && download.mixedCount == 0 && download.version == 1)
        #expect(download.disk == RangeSet([0..<file.byteCount]))
        #expect(accepted > 1)
    }

    @Test("A changed file is detected when no connection receives the old one, and is fetched again")
    func changed() throws {
        let old = SimulatedFile(byteCount: 60 << 20)
        let new = SimulatedFile(byteCount: 50 << 20, tag: "\"two\"", version: 2)
        var download = try SimulatedDownload { rangeRequest, number in
            try (number < 4 ? old : new).reply(rangeRequest)
        }
        download.run()
        #expect(download.isComplete && download.restarts == [.changed] && download.version == 2)
        #expect(download.mixedCount == 0 && download.disk == RangeSet([0..<new.byteCount]))
    }
}
