import MartletPool
@testable import MartletDownloads
import Testing

@Suite("Detection of the client's own bandwidth limit")
struct ThrottlingDetectorTests {
    private func judge(_ samples: [BandwidthThrottling]) -> Bool {
        var detector = ThrottlingDetector()
        for hold in samples { detector.sample(hold) }
        return detector.isHeldBack
    }

    @Test("Without a limit nothing is throttled")
    func unlimited() {
        #expect(!ThrottlingDetector().isHeldBack)
        #expect(!judge([.unlimited]))
        #expect(!judge([.held, .unlimited]))
    }

    @Test("A limit is in effect until three samples in a row show no wait, because it starts with a burst")
    func bursts() {
        #expect(judge([.free]))
        #expect(judge([.free, .free]))
        #expect(!judge([.free, .free, .free]))
        #expect(judge([.free, .free, .held, .free, .free]))
        #expect(judge([.free, .free, .free, .held]))
    }

    @Test("A long stall is not throttling; the first bytes after it are judged as usual")
    func idle() {
        #expect(judge(Array(repeating: .idle, count: 19)))
        #expect(!judge(Array(repeating: .idle, count: 20)))
        #expect(judge(Array(repeating: .idle, count: 100) + [.free]))
        #expect(judge([.free, .free, .idle, .held]))
        #expect(!judge([.free, .idle, .free, .idle, .free]))
    }
}
