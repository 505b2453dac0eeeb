/// What is to be done about a response.
package enum AuthenticationDecision: Sendable {
    /// Nothing: it is the call's answer.
    case deliver
    /// The request is to be sent again, with the field that the machine prepares then.
    case resend
    /// The handler is to be asked, and the machine told what it said.
    case ask(AuthenticationChallenge)
    /// Another token is to be fetched in place of this one, and the machine told it.
    case refresh(after: String)
    /// The server failed to prove itself: the call ends with this.
    case refuse(AuthenticationError)
}

/// What a request is to be sent with.
package enum AuthenticationPreparation: Sendable {
    /// No field of Martlet's.
    case none
    /// The field's value.
    case value(AuthorizationValue)
    /// A token is to be fetched, the machine told it, and asked again.
    case fetchToken
}
