import Martlet
import Synchronization

/// The sessions of the program. All of them are closed before it exits, so that no call runs during process shutdown.
final class ProgramSessions: Sendable {
    static let shared = ProgramSessions()
    /// The registered sessions: commands add them, ``end()`` removes all.
    private let sessions = Mutex<[WeakSession]>([])

    /// Creates and registers a session. Deallocated sessions are removed from the list.
    func make(_ configuration: SessionConfiguration = .default) -> HTTPSession {
        let session = HTTPSession(configuration: configuration)
        sessions.withLock { sessions in
            sessions.removeAll { !$0.isAlive }
            sessions.append(WeakSession(session))
        }
        return session
    }

    /// Invalidates all sessions and cancels their calls; returns when the calls have ended.
    func end() async {
        for session in sessions.withLock({ exchange(&$0, with: []) }) { await session.invalidateAndCancel() }
    }
}
