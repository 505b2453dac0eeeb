import Martlet
import MartletTestSupport

extension HTTPSession {
    /// Creates a session for one test. Its timeouts end only hangs.
    static func patient(_ change: (inout SessionConfiguration) -> Void = { _ in }) -> HTTPSession {
        var configuration = SessionConfiguration.ephemeral.patient(total: .seconds(600))
        change(&configuration)
        return HTTPSession(configuration: configuration)
    }
}
