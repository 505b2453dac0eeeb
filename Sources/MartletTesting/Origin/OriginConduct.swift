/// How an origin treats its connections.
enum OriginConduct: Sendable {
    /// It speaks HTTP, and a handler answers.
    case handler(OriginHandler)
    /// It plays scripts: the first connection the first one, and so on; the last one again and again.
    case scripts([ServerScript])
}
