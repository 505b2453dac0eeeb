import MartletCore
import Testing

@testable import MartletUploads

@Suite("The machine of an upload")
struct UploadMachineTests {
    private static let url = try? HTTPURL("https://example.org/up/1")

    /// A machine that records its steps as text, such as `append 0..<5 last after 0`.
    private struct Run {
        var machine: UploadMachine
        var steps: [String] = []
        var code: HTTPError.Code?

        init(
            _ given: UploadProtocol, byteCount: UInt64 = 10, chunk: UInt64? = nil, isRepeatable: Bool = false,
            retries: Int = 3, from checkpoint: UploadMachine.Checkpoint = UploadMachine.Checkpoint()
        ) {
            let retry = UploadRetry(
                maximumRetries: retries, initialDelay: .seconds(1), maximumDelay: .seconds(4),
                maximumRetryAfter: .seconds(60))
            machine = UploadMachine(
                UploadMachine.Plan(
                    byteCount: byteCount, given: given, isRepeatable: isRepeatable, chunkByteCount: chunk, retry: retry),
                from: checkpoint)
            note(machine.start())
        }

        mutating func note(_ step: UploadMachine.Step) {
            switch step {
            case .send(let request, let delay):
                let text =
                    switch request {
                    case .append(let range, let isLast): "append \(range)\(isLast ? " last" : "")"
                    case let other: "\(other)"
                    }
                steps.append(delay == .zero ? text : "\(text) after \(delay.components.seconds)")
            case .finish(let isLost): steps.append(isLost ? "finish, response lost" : "finish")
            case .fail(let error):
                steps.append("fail")
                code = error.code
            }
        }

        mutating func receive(_ status: Int, _ change: (inout UploadReply) -> Void = { _ in }) {
            machine.sending()
            var reply = UploadReply(status: status)
            change(&reply)
            note(machine.received(reply, random: 1))
        }

        mutating func lose(_ code: HTTPError.Code = .connectionLost, wasSent: Bool = true) {
            machine.sending()
            note(machine.failed(HTTPError(code, phase: .sending, message: "", wasSent: wasSent), random: 1))
        }

        mutating func create() {
            let url = UploadMachineTests.url
            receive(201) { $0.location = url }
        }
    }

    @Test("A resumable upload is created without content, and completed by its last request")
    func ietf() {
        var run = Run(.ietf, chunk: 4)
        run.create()
        run.receive(204) { $0.isComplete = false }
        run.receive(204) { ($0.isComplete, $0.offset) = (false, 8) }
        run.receive(200) { $0.isComplete = true }
        #expect(run.steps == ["create", "append 0..<4", "append 4..<8", "append 8..<10 last", "finish"])
        #expect(run.machine.checkpoint.offset == 10)
    }

    @Test("A tus upload ends with its length, an empty one with its creation")
    func tus() {
        var run = Run(.tus, chunk: 6)
        run.create()
        run.receive(204) { $0.offset = 6 }
        run.receive(204) { $0.offset = 10 }
        #expect(run.steps == ["create", "append 0..<6", "append 6..<10 last", "finish"])
        var empty = Run(.tus, byteCount: 0)
        empty.create()
        #expect(empty.steps == ["create", "finish"])
    }

    @Test("An empty file is completed by a request without content")
    func emptyFile() {
        var run = Run(.ietf, byteCount: 0)
        run.create()
        run.receive(201) { $0.isComplete = true }
        #expect(run.steps == ["create", "append 0..<0 last", "finish"])
    }

    @Test(
        "The announcement of the server chooses the protocol",
        arguments: [
            (UploadProtocol.ietf, 204, "create"), (.tus, 204, "create"), (.plain, 200, "whole"), (.plain, 405, "whole"),
            (.plain, 503, "discover after 1"), (.plain, 504, "discover after 1"), (.plain, 408, "discover after 1"),
        ])
    func discovery(announced: UploadProtocol, status: Int, next: String) {
        var run = Run(.automatic)
        run.receive(status) { $0.announced = announced }
        #expect(run.steps == ["discover", next])
    }

    @Test("A small request that may be repeated is sent whole, and a large one is not")
    func small() {
        #expect(Run(.automatic, byteCount: 1 << 20, isRepeatable: true).steps == ["whole"])
        #expect(Run(.automatic, byteCount: 1 << 20 + 1, isRepeatable: true).steps == ["discover"])
        #expect(Run(.ietf, byteCount: 5, isRepeatable: true).steps == ["whole"])
        #expect(Run(.ietf, byteCount: 5).steps == ["create"])
        #expect(Run(.tus, byteCount: 5, isRepeatable: true).steps == ["create"])
    }

    @Test("After a lost connection the server is asked for the offset, also in a later process")
    func resumption() {
        var run = Run(.ietf)
        run.create()
        run.lose()
        run.receive(204) { ($0.offset, $0.isComplete, $0.length) = (7, false, 10) }
        #expect(run.steps == ["create", "append 0..<10 last", "query after 1", "append 7..<10 last"])
        #expect(Run(.automatic, from: run.machine.checkpoint).steps == ["query"])
    }

    @Test("A lost response to the last bytes is replaced by that to the query")
    func lostResponse() {
        for given in [UploadProtocol.ietf, .tus] {
            var run = Run(given)
            run.create()
            run.machine.lastBytesRead()
            #expect(run.machine.checkpoint.mayBeComplete)
            run.lose()
            run.receive(200) { ($0.offset, $0.isComplete) = (10, given == .ietf ? true : nil) }
            #expect(run.steps.last == "finish, response lost")
        }
    }

    @Test("All bytes without completion are completed without content")
    func completion() {
        var run = Run(.ietf)
        run.create()
        run.lose()
        run.receive(204) { ($0.offset, $0.isComplete) = (10, false) }
        #expect(run.steps.last == "append 10..<10 last")
    }

    @Test("A server that never completes the upload ends it after the retries")
    func neverComplete() {
        var run = Run(.ietf)
        run.create()
        for _ in 0..<20 where run.code == nil { run.receive(204) { ($0.offset, $0.isComplete) = (10, false) } }
        #expect(run.code == .uploadRejected)
    }

    @Test(
        "A status ends the upload, or not",
        arguments: [
            (400, nil), (401, nil), (403, nil), (413, nil), (415, nil), (501, nil), (505, nil), (301, nil),
            (408, "query after 1"), (423, "query after 1"), (425, "query after 1"), (429, "query after 1"),
            (500, "query after 1"), (502, "query after 1"), (503, "query after 1"), (504, "query after 1"),
            (409, "query"), (460, "query"), (404, "create"), (410, "create"),
        ] as [(Int, String?)])
    func status(status: Int, next: String?) {
        for given in [UploadProtocol.ietf, .tus] {
            var run = Run(given)
            run.create()
            run.receive(status)
            #expect(run.steps.last == next ?? "fail")
            #expect(run.code == (next == nil ? .unacceptableStatus : nil))
        }
    }

    @Test("Retry-After is respected up to its maximum, and delays grow up to theirs")
    func delays() {
        var run = Run(.ietf, retries: 6)
        run.create()
        run.receive(503) { $0.retryAfter = .seconds(30) }
        run.receive(503) { $0.retryAfter = .seconds(3600) }
        run.receive(503)
        run.receive(503)
        run.receive(503) { $0.retryAfter = .seconds(-5) }
        #expect(
            run.steps.suffix(5)
                == ["query after 30", "query after 60", "query after 4", "query after 4", "query"])
    }

    @Test("Retries without a new byte are limited, and a new byte resets their number")
    func limit() {
        var run = Run(.tus, chunk: 5, retries: 2)
        run.create()
        for round in 1...2 {
            run.lose()
            run.lose()
            run.receive(200) { $0.offset = UInt64(round) }
        }
        run.lose()
        run.lose()
        run.lose()
        #expect(run.code == .connectionLost)
    }

    @Test("A server that goes back and forth ends the upload")
    func oscillation() {
        var run = Run(.tus, chunk: 5)
        run.create()
        for _ in 0..<40 where run.code == nil {
            switch run.steps.last {
            case let step? where step.hasPrefix("query"): run.receive(200) { $0.offset = 0 }
            case "append 0..<5": run.receive(204) { $0.offset = 5 }
            default: run.receive(409)
            }
        }
        #expect(run.code == .unacceptableStatus)
        #expect(run.steps.count < 20)
    }

    @Test("A server that forgets the upload again and again ends it")
    func forgetting() {
        var run = Run(.ietf, chunk: 5)
        for _ in 0..<40 where run.code == nil {
            switch run.steps.last {
            case "append 0..<5": run.receive(204) { $0.offset = 5 }
            case let step? where step.hasPrefix("append"): run.receive(404)
            default: run.create()
            }
        }
        #expect(run.code == .unacceptableStatus)
    }

    @Test("An offset after the end, another length, and an early completion are rejected")
    func lies() {
        let lies: [(inout UploadReply) -> Void] = [
            { $0.offset = 11 }, { ($0.offset, $0.length) = (5, 11) }, { ($0.offset, $0.isComplete) = (5, true) },
            { $0.offset = .max },
        ]
        for lie in lies {
            var run = Run(.ietf)
            run.create()
            run.lose()
            run.receive(204, lie)
            #expect(run.code == .uploadRejected)
        }
        var run = Run(.tus)
        run.create()
        run.receive(204) { $0.offset = 11 }
        #expect(run.code == .uploadRejected)
    }

    @Test("A smaller offset than the acknowledged one is where the upload continues")
    func backwards() {
        var run = Run(.ietf, chunk: 5)
        run.create()
        run.receive(204) { $0.isComplete = false }
        run.receive(409)
        run.receive(204) { ($0.offset, $0.isComplete) = (2, false) }
        #expect(run.steps.last == "append 2..<7")
    }

    @Test("An upload without a location, and one that exceeds the maximum, are rejected")
    func creation() {
        var run = Run(.ietf)
        run.receive(201)
        #expect(run.code == .uploadRejected)
        var large = Run(.ietf)
        large.receive(201) { reply in
            reply.location = UploadMachineTests.url
            reply.limits.maximumSize = 9
        }
        #expect(large.code == .uploadRejected)
    }

    @Test("Requests have the sizes that the server allows")
    func sizes() {
        var run = Run(.ietf, chunk: 2)
        run.receive(201) { reply in
            reply.location = UploadMachineTests.url
            (reply.limits.minimumAppend, reply.limits.maximumAppend) = (4, 6)
        }
        #expect(run.steps.last == "append 0..<4")
        run.receive(413) { $0.limits.maximumAppend = 3 }
        run.receive(204) { ($0.offset, $0.isComplete) = (0, false) }
        #expect(run.steps.last == "append 0..<2")
        run.receive(413) { $0.limits.maximumAppend = 3 }
        #expect(run.code == .unacceptableStatus)
    }

    @Test("A plain request that may have taken effect is repeated only if that is allowed")
    func plain() {
        var run = Run(.plain)
        run.lose(.connectFailed, wasSent: false)
        #expect(run.steps == ["whole", "whole after 1"])
        #expect(!run.machine.checkpoint.mayBeComplete)
        run.lose()
        #expect(run.code == .uploadUncertain)
        #expect(run.machine.checkpoint.mayBeComplete)
        #expect(Run(.plain, from: run.machine.checkpoint).code == .uploadUncertain)
        #expect(Run(.plain, isRepeatable: true, from: run.machine.checkpoint).steps == ["whole"])

        var repeated = Run(.plain, isRepeatable: true)
        repeated.lose()
        repeated.receive(500)
        repeated.receive(201)
        #expect(repeated.steps == ["whole", "whole after 1", "whole after 2", "finish"])
    }

    @Test(
        "After a failed status a plain request is repeated if the server did not process it",
        arguments: [
            (429, nil), (503, nil), (500, .uploadUncertain), (504, .uploadUncertain), (404, .unacceptableStatus),
        ]
            as [(Int, HTTPError.Code?)])
    func plainStatus(status: Int, code: HTTPError.Code?) {
        var run = Run(.plain)
        run.receive(status)
        #expect(run.code == code)
    }

    @Test("A lost upload that may be complete is created again only if it may be repeated")
    func uncertain() {
        for isRepeatable in [false, true] {
            var run = Run(.tus, isRepeatable: isRepeatable)
            run.create()
            run.machine.lastBytesRead()
            run.lose()
            run.receive(404)
            #expect(run.code == (isRepeatable ? nil : .uploadUncertain))
            if isRepeatable { #expect(run.steps.last == "create after 2") }
        }
    }

    @Test("An interim response makes a whole request resumable, and its offsets are progress")
    func interim() {
        var run = Run(.automatic, isRepeatable: true)
        var reply = UploadReply(status: 104)
        reply.location = UploadMachineTests.url
        run.machine.interimReceived(reply)
        #expect(run.machine.checkpoint.url == UploadMachineTests.url)
        reply.location = nil
        for (offset, expected) in [(4, 4), (3, 4), (11, 4), (6, 6)] as [(UInt64, UInt64)] {
            reply.offset = offset
            run.machine.interimReceived(reply)
            #expect(run.machine.checkpoint.offset == expected)
        }
        run.lose()
        #expect(run.steps.last == "query after 1")

        var plain = Run(.plain, isRepeatable: true)
        reply.location = UploadMachineTests.url
        plain.machine.interimReceived(reply)
        #expect(plain.machine.checkpoint == UploadMachine.Checkpoint(protocol: .plain))
    }

    @Test("Errors that a retry cannot fix end the upload")
    func finalErrors() {
        for code in [HTTPError.Code.fileFailed, .uploadFileChanged, .protocolViolation, .invalidHeader] {
            var run = Run(.ietf)
            run.create()
            run.lose(code)
            #expect(run.code == code)
        }
    }

    @Test("A request that may have taken effect is not repeated after a 504 and the loss of its upload URL")
    func uncertainInterim() {
        var run = Run(.automatic)
        run.receive(405)
        var reply = UploadReply(status: 104)
        reply.location = UploadMachineTests.url
        run.machine.interimReceived(reply)
        run.receive(504)
        run.receive(404)
        #expect(run.code == .uploadUncertain)
    }

    @Test("A successful response without completion is confirmed by a query")
    func unconfirmed() {
        var run = Run(.ietf)
        run.create()
        run.receive(200)
        #expect(run.steps.last == "query after 1")
        run.receive(204) { ($0.offset, $0.isComplete) = (10, true) }
        #expect(run.steps.last == "finish, response lost")
    }
}
