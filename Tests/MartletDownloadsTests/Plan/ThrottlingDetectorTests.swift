import MartletConnections
@testable import MartletDownloads
import Testing

@Suite("Whether a limit of our own holds a download back")
struct ThrottlingDetectorTests {
    private func judge(_ looks: [BandwidthThrottling]) -> Bool {
        var judgement = ThrottlingDetector()
        for hold in looks { judgement.look(hold) }
        return judgement.isHeldBack
    }

    @Test("Without a limit nothing does")
    func unlimited() {
        #expect(!ThrottlingDetector().isHeldBack)
        #expect(!judge([.unlimited]))
        #expect(!judge([.held, .unlimited]))
    }

    @Test("A limit binds until three looks in a row show no wait: it lets a burst pass at first")
    func bursts() {
        #expect(judge([.free]))
        #expect(judge([.free, .free]))
        #expect(!judge([.free, .free, .free]))
        #expect(judge([.free, .free, .held, .free, .free]))
        #expect(judge([.free, .free, .free, .held]))
    }

    @Test("What stands still for long is not held back; its first bytes are judged as any")
    func idle() {
        #expect(judge(Array(repeating: .idle, count: 19)))
        #expect(!judge(Array(repeating: .idle, count: 20)))
        #expect(judge(Array(repeating: .idle, count: 100) + [.free]))
        #expect(judge([.free, .free, .idle, .held]))
        #expect(!judge([.free, .idle, .free, .idle, .free]))
    }
}
