"""Conversations that OpenAI's Conversations API keeps: `OpenAIConversationsSession`."""
