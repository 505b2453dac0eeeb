import Foundation

/// A note, as the service returns it.
public struct Note: Codable, Hashable, Identifiable, Sendable {
    /// The number that the service gave the note.
    public var id: Int
    /// The title of the note.
    public var title: String
    /// The tags, in alphabetical order.
    public var tagNames: [String]
    /// The time at which the service stored the note.
    public var createdAt: Date

    /// Creates a note.
    public init(id: Int, title: String, tagNames: [String], createdAt: Date) {
        self.id = id
        self.title = title
        self.tagNames = tagNames
        self.createdAt = createdAt
    }
}

/// A note that the service has not stored yet.
public struct NoteDraft: Codable, Hashable, Sendable {
    /// The title, which must not be empty.
    public var title: String
    /// The tags of the note.
    public var tagNames: [String]

    /// Creates a draft.
    public init(title: String, tagNames: [String] = []) {
        self.title = title
        self.tagNames = tagNames
    }
}

/// One page of a list.
struct Page<Item: Decodable & Sendable>: Decodable, Sendable {
    var items: [Item]
    /// The cursor of the next page; `nil` on the last one.
    var nextCursor: String?
}

/// An error that the service describes (RFC 9457, `application/problem+json`).
public struct APIProblem: Error, Decodable, Hashable, Sendable {
    /// A member of the request that the service rejected.
    public struct InvalidField: Decodable, Hashable, Sendable {
        /// The name of the member.
        public var name: String
        /// The reason, in words.
        public var reason: String
    }

    /// The kind of the problem, in words.
    public var title: String
    /// The status of the response.
    public var status: Int
    /// An explanation of this occurrence.
    public var detail: String?
    /// The members of the request that the service rejected.
    public var invalidFields: [InvalidField]?
}
