package import MartletClient

/// What follows from a try to send a request.
package enum ReplayVerdict: Sendable {
    /// It was taken.
    case delivered(HTTPExchange)
    /// It is sent again later, no sooner than said.
    case later(OfflinePostponement.Reason, atLeast: Duration?, message: String)
    /// The server wants credentials.
    case unauthorized(HTTPExchange)
    /// Sending it again would not help.
    case dead(OfflineDeadLetter, HTTPExchange? = nil)
    /// Sending it again might double its effect.
    case uncertain(OfflineDeadLetter, Uncertainty)

    /// By what it is not known whether a request took effect.
    package enum Uncertainty: Sendable {
        /// An answer that does not tell.
        case answer(HTTPExchange)
        /// No answer.
        case failure(any Error)
    }
}
