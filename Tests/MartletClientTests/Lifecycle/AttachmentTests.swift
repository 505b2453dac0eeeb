import Martlet
import Testing

@testable import MartletCore

@Suite("Attachments of a session")
struct AttachmentTests {
    private final class Plain: SessionAttachment {
        func limits(_ limits: PoolLimits) -> PoolLimits { limits }
        func end() {}
    }

    // An earlier version created it under a lock of the session, so that the second access ended the process.
    @Test("An attachment is created once, and may use the session while it is created")
    func creation() {
        let core = HTTPSession.own().core
        var count = 0
        func make() -> Plain {
            count += 1
            #expect(core.poolLimits.connectionsPerHost > 0)
            return Plain()
        }
        let first = core.attachment(make)
        #expect(core.attachment(make) === first)
        #expect(count == 1)
    }
}
