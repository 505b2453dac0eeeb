import Martlet
import Synchronization

/// The sessions of the program. All of them end before it exits, so that none of their calls runs during process shutdown.
final class ProgramSessions: Sendable {
    static let shared = ProgramSessions()

    /// Guards the sessions: commands make them, the end of the program takes them.
    private let sessions = Mutex<[WeakSession]>([])

    /// Makes a session. Sessions without owners are forgotten.
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
