extension HTTPRequest {
    /// The request as a command line of curl, its secrets masked: what one pastes into a bug report.
    public var curlCommand: String { curlCommand() }

    /// The request as a command line of curl, quoted for a POSIX shell.
    ///
    /// Fields that curl adds of its own (`User-Agent`, `Accept`) are not turned off. A body that is no text is piped in by
    /// `printf`; one that is large, or comes from a stream, is read from standard input, where it has to be given.
    ///
    /// - Parameters:
    ///   - body: The body that goes with it.
    ///   - mask: What is kept out of it; ``SecretMask/none`` gives a command that works, and every secret.
    public func curlCommand(body: HTTPBody = .none, mask: SecretMask = .standard) -> String {
        var command = CurlCommand(mask: mask)
        command.add(self, hasBody: body.isPresent)
        command.add(body, contentType: headerFields[.contentType])
        return command.text
    }
}
