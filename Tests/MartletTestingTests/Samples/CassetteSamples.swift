import FoundationEssentials
import MartletContent
import MartletCore
import MartletDiagnostics
import MartletTesting
import Testing

/// The samples about cassettes of the page about testing.
@Suite("The samples about cassettes")
struct CassetteSamples {
    func session(_ name: String) throws -> HTTPSession {
        let isRecording = ProcessInfo.processInfo.environment["RECORD"] != nil
        let file = "Fixtures/\(name).har"
        let cassette = try Cassette(file: file, mode: isRecording ? .record : .replay)
        return HTTPSession(configuration: .ephemeral).with(cassette)
    }

    @Test("A session without a recording cannot be created")
    func missing() {
        #expect(throws: CassetteError.self) { try session("missing-\(UInt64.random(in: 0 ... .max))") }
    }

    @Test("Options of a cassette")
    func options() throws {
        let file = "Fixtures/missing-\(UInt64.random(in: 0 ... .max)).har"
        var options = CassetteOptions()
        options.matching.ignoredQueryItems = ["timestamp"]
        options.matching.headers = [.accept]
        options.matching.body = .json
        options.mask = .standard.adding(queryItems: ["api_key"])
        options.secretJSONKeys = ["access_token"]
        options.repeats = .never
        let cassette = try Cassette(file: file, mode: .replayOrRecord, options: options)
        #expect(cassette.entries.isEmpty && cassette.mode == .replayOrRecord)
    }
}
