import Martlet

extension HTTPSession {
    /// Creates a session for a machine that is busy with other tests, where a handshake can take long.
    static func patient(_ change: (inout SessionConfiguration) -> Void = { _ in }) -> HTTPSession {
        var configuration = SessionConfiguration.ephemeral
        configuration.timeouts = Timeouts(
            connect: .seconds(300), head: .seconds(300), idle: .seconds(300), total: .seconds(600))
        change(&configuration)
        return HTTPSession(configuration: configuration)
    }
}
