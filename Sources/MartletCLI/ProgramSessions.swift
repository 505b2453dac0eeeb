import Martlet
import Synchronization

/// The sessions of the program. All of them end before it exits, so that none of their calls runs during process
/// shutdown.
final class ProgramSessions: Sendable {
    static let shared = ProgramSessions()
    /// Guards the sessions: commands add them, and the end of the program removes them.
    private let sessions = Mutex<[WeakSession]>([])

    /// Creates a session. Sessions without owners are removed from the list.
    func make(_ configuration: SessionConfiguration = .default) -> HTTPSession {
        let session = HTTPSession(configuration: configuration)
        sessions.withLock { sessions in
            sessions.removeAll { !$0.isAlive }
            sessions.append(WeakSession(session))
        }
        return session
    }

    /// Cancels all calls, and returns when they have ended.
    func end() async {
        for session in sessions.withLock({ exchange(&$0, with: []) }) { await session.invalidateAndCancel() }
    }
}
