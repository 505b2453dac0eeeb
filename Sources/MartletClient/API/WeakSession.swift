/// A session that is not kept: it can be ended as long as somebody else keeps it, or a call of it runs.
package struct WeakSession: Sendable {
    private weak var core: SessionCore?

    /// A reference to a session and its views.
    package init(_ session: HTTPSession) {
        core = session.core
    }

    /// Whether there is still a session to end.
    package var isAlive: Bool { core != nil }

    /// Ends it as ``HTTPSession/invalidateAndCancel()`` does; delegates are not told.
    package func invalidateAndCancel() async {
        await core?.invalidate(cancelling: true) {}
    }
}
